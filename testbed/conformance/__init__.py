"""Karpenter's own end-to-end suites against ``tenure run``, on the test bed: ``make conformance``.

In the order of a run: ``source`` fetches and unpacks Karpenter's pinned module, ``suites`` compiles
it, ``cluster`` starts a control plane with a controller on it, ``specs`` lists what the suites hold,
``trial`` runs one spec, ``report`` reads what Ginkgo wrote, ``expectations`` says what ought to come
out, ``results`` keeps what did, and ``docs/conformance_page.py`` renders the page from both.
"""
