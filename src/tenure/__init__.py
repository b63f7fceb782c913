"""Tenure manages the life of Kubernetes nodes. ARCHITECTURE.md says how; start there."""
