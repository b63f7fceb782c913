"""One spec against one cluster: a process of its own, which never takes longer than its limit.

Ginkgo ends a spec at the limit and says what it was waiting for; then the suite cleans up, which may
hang as long as the spec did. So the process is interrupted a while later, and killed in the end.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Final

from testbed.conformance.expectations import Rule
from testbed.conformance.report import Outcome, Spec, State, outcome
from testbed.conformance.suites import Suites

#: Seconds that a spec gets for its clean-up when its limit is over.
CLEAN_UP: Final = 45
#: Seconds that Ginkgo waits for a spec that it has interrupted. These specs do not listen.
GRACE: Final = 2
#: Seconds for Ginkgo to write its report after an interrupt.
REPORTING: Final = 15
PR_SET_PDEATHSIG: Final = 1
_LIBC = ctypes.CDLL(None, use_errno=True)


def trial(
    spec: Spec,
    rule: Rule,
    focus: str,
    suites: Suites,
    kubeconfig: Path,
    folder: Path,
    **environment: str,
) -> Outcome:
    """What became of it. Its output and Ginkgo's report are left in the folder."""
    report = folder / "report.json"
    limit = rule.limit.total_seconds()
    command = [
        str(suites.suite(spec.suite)), f"-test.timeout={limit + 600:.0f}s",
        f"--ginkgo.focus={focus}", f"--ginkgo.timeout={limit:.0f}s",
        f"--ginkgo.grace-period={GRACE}s", f"--ginkgo.json-report={report}",
        "--ginkgo.v", "--ginkgo.no-color", *_node_class(rule.registration_delay, folder),
    ]  # fmt: skip
    environment |= {"KUBECONFIG": str(kubeconfig), "OUTPUT_DIR": str(folder)}
    _run(command, suites.folder(spec.suite), environment, folder / "output.log", limit)
    found = outcome(spec.name, report.read_text()) if report.exists() else None
    return found or Outcome(
        State.TIMED_OUT, limit, "killed: it did not end by itself, and reported nothing"
    )


def _node_class(delay: timedelta, folder: Path) -> list[str]:
    if not delay:
        return []
    file = folder / "nodeclass.json"
    document = {
        "apiVersion": "karpenter.kwok.sh/v1alpha1",
        "kind": "KWOKNodeClass",
        "metadata": {"name": "default"},
        "spec": {"nodeRegistrationDelay": f"{delay.total_seconds():.0f}s"},
    }
    file.write_text(json.dumps(document))  # JSON is YAML.
    return [f"--default-nodeclass={file}"]


def _run(
    command: list[str], where: Path, environment: dict[str, str], log: Path, limit: float
) -> None:
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603  # what we have built
            command,
            cwd=where,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is for us; it gets ours.
            preexec_fn=_die_with_us,  # noqa: PLW1509  # there are no threads here
        )
    try:
        with suppress(subprocess.TimeoutExpired):
            process.wait(limit + CLEAN_UP)
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Politely, so that it writes its report."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(REPORTING)
    if process.poll() is None:
        process.kill()
    process.wait()


def _die_with_us() -> None:
    _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
