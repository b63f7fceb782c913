"""Notices of the cloud."""
