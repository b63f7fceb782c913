// Karpenter's module is built from its own folder (testbed/karpentersource.py): its go line
// may be newer than the local toolchain, and then no module that requires it can be loaded.
// This file and go.sum say which version it is.
module testbed/karpenter

go 1.26.0

require sigs.k8s.io/karpenter v1.15.0
