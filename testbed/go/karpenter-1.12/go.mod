// An older release, as in ../karpenter; `make test-beside KARPENTER=1.12` takes it.
module testbed/karpenter

go 1.26.0

require sigs.k8s.io/karpenter v1.12.1
