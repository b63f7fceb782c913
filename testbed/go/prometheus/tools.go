//go:build tools

// Package tools pins Prometheus and promtool in go.mod.
package tools

import (
	_ "github.com/prometheus/prometheus/cmd/prometheus"
	_ "github.com/prometheus/prometheus/cmd/promtool"
)
