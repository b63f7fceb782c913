"""A storage driver for the test bed: provisions and attaches volumes that exist as objects only.

``orders`` says what the driver does next, ``__main__`` watches and does it. It plays three programs of
every CSI driver: external-provisioner, external-attacher and the agent on each node, which
publishes the CSINode. Binding, selecting a node and asking for attachments stay with kube-controller-manager
and kube-scheduler.
"""
