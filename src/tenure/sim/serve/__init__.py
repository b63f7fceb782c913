"""The embedded cluster served over HTTPS, for kubectl and everybody's own tools."""
