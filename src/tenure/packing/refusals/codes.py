"""Stable codes of why a pod fits nowhere."""

from __future__ import annotations

from enum import StrEnum


class Why(StrEnum):
    """Why a pool cannot take a pod, in the order in which this is found out.

    Stable codes; where pools differ, a pod is given the code of the pool that came furthest.
    """

    CONSTRAINT_NOT_MODELLED = "ConstraintNotModelled"
    UNREADABLE = "PodSpecUnreadable"
    VOLUME_UNUSABLE = "VolumeUnusable"
    NO_POOL = "NoPool"
    TAINT_NOT_TOLERATED = "TaintNotTolerated"
    REQUIREMENTS_INCOMPATIBLE = "RequirementsIncompatible"
    NO_TYPE_MATCHES = "NoInstanceTypeMatches"
    HOST_PORT_TAKEN = "HostPortTaken"
    TOO_LARGE = "TooLarge"
    NO_OFFERING = "NoOfferingAvailable"
    LIMIT_REACHED = "LimitReached"
    MIN_VALUES_UNMET = "MinValuesUnmet"
    TOPOLOGY_UNSATISFIABLE = "TopologyUnsatisfiable"
