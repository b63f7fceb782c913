"""The test bed: a real Kubernetes control plane on loopback, built once and started in seconds."""
