"""The performance suite reads the metrics of the controller's pod; here the controller is a process.

So four lines of its helpers are replaced while it is compiled (``go test -overlay``): metrics come from the address in
``CONTROLLER_METRICS``. The specs and their thresholds are as they are. Python has no Go heap: the resident memory
counts in its place, which is more.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

METRICS: Final = "CONTROLLER_METRICS"
HELPERS: Final = Path("test") / "pkg" / "environment" / "common"

_FIND: Final = (
    "func (env *Environment) FindActiveKarpenterPod(ctx context.Context) (*corev1.Pod, error) {\n"
)
_FOUND: Final = '\tif metricsAddress() != "" {\n\t\treturn &corev1.Pod{}, nil\n\t}\n'

#: By file: what is replaced, each once.
EDITS: Final = {
    "expectations.go": (
        (
            "env.ExpectPodPortForwarded(ctx, env.ExpectActiveKarpenterPod(), 8080, localPort)",
            "_, _ = ctx, localPort",
        ),
        (
            'resp, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/metrics", localPort))',
            "resp, err := http.Get(metricsAddress())",
        ),
    ),
    "karpenter_metrics_poller.go": (
        (
            'mp.env.KubeClient.CoreV1().Pods("kube-system").ProxyGet("http", podName, "8080", "/metrics", nil).DoRaw(ctx)',
            "metricsOfProcess()",
        ),
    ),
    "karpenter_profiler.go": ((_FIND, _FIND + _FOUND),),
}

#: Added to the package.
ADDED: Final = """\
package common

import (
	"bytes"
	"io"
	"net/http"
	"os"
)

func metricsAddress() string { return os.Getenv("CONTROLLER_METRICS") }

func metricsOfProcess() ([]byte, error) {
	resp, err := http.Get(metricsAddress())
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if bytes.Contains(data, []byte("go_gc_heap_live_bytes")) {
		return data, nil
	}
	for _, line := range bytes.Split(data, []byte("\\n")) {
		if amount, ok := bytes.CutPrefix(line, []byte("process_resident_memory_bytes ")); ok {
			data = append(data, []byte("\\n# TYPE go_gc_heap_live_bytes gauge\\ngo_gc_heap_live_bytes ")...)
			data = append(append(data, amount...), '\\n')
			break
		}
	}
	return data, nil
}
"""


class Changed(Exception):
    """Another version of Karpenter has another text: the edits have to be looked at."""


def write_overlay(source: Path, folder: Path) -> Path:
    """The file for ``-overlay``; what it names lies beside it."""
    replaced = {}
    for name, edits in EDITS.items():
        text = (source / HELPERS / name).read_text(encoding="utf-8")
        for old, new in edits:
            if text.count(old) != 1:
                raise Changed(f"{HELPERS / name}: expected once: {old}")
            text = text.replace(old, new)
        (folder / name).write_text(text, encoding="utf-8")
        replaced[str(source / HELPERS / name)] = str(folder / name)
    (folder / "process_metrics.go").write_text(ADDED, encoding="utf-8")
    replaced[str(source / HELPERS / "process_metrics.go")] = str(folder / "process_metrics.go")
    file = folder / "overlay.json"
    file.write_text(json.dumps({"Replace": replaced}), encoding="utf-8")
    return file
