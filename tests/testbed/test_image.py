"""The container's build file, as far as it can be read without building it."""

from __future__ import annotations

import re
from typing import Final

import yaml

from testbed.manifests import MANIFEST
from tests.folders import ROOT

DOCKERFILE: Final = (ROOT / "Dockerfile").read_text()


def test_what_is_copied_is_there_and_not_kept_out() -> None:
    copied = [
        name
        for line in re.findall(r"^COPY (?!--from)(.*) \S+$", DOCKERFILE, re.M)
        for name in line.split()
    ]
    assert {"pyproject.toml", "uv.lock", "src"} <= set(copied)
    assert [name for name in copied if not (ROOT / name).exists()] == []
    let_in = re.findall(r"^!(.*)$", (ROOT / ".dockerignore").read_text(), re.M)
    assert sorted(let_in) == sorted(copied)


def test_the_user_is_the_one_that_the_manifests_ask_for_and_finds_its_command() -> None:
    objects = yaml.safe_load_all(MANIFEST.read_text())
    pod = next(o for o in objects if o["kind"] == "Deployment")["spec"]["template"]["spec"]
    context = pod["securityContext"]
    assert f"USER {context['runAsUser']}:{context['runAsGroup']}\n" in DOCKERFILE
    assert pod["containers"][0]["command"] == ["tenure", "run"]
    assert "ENV PATH=/opt/tenure/bin:$PATH" in DOCKERFILE


def test_the_base_image_is_one_argument_that_takes_a_digest() -> None:
    """A digest stands behind the whole name, so the whole name is the argument."""
    assert re.findall(r"^ARG (\w+)=(.*)$", DOCKERFILE, re.M) == [
        ("BASE", "python:3.11-slim-bookworm"),
        ("VERSION", "0.1.dev0"),
    ]
    images = re.findall(r"^FROM (\S+)", DOCKERFILE, re.M)
    assert images == ["${BASE}", "${BASE}"]
    page = (ROOT / "docs" / "security.md").read_text()
    assert "--build-arg BASE=python:3.11-slim-bookworm@sha256:" in page


def test_nothing_is_installed_that_the_lock_does_not_name() -> None:
    installs = re.findall(r"uv sync (.*)", DOCKERFILE)
    assert installs
    assert all("--frozen --no-dev" in flags for flags in installs)
    assert '"uv==$(awk ' in DOCKERFILE
