"""Alerts and dashboards, generated from the table of metrics.

``alerts.py`` and ``panels.py`` say what is asked of which metric; ``rules.py``, ``dashboard.py`` and ``runbook.py`` write
that for Prometheus, Grafana and people. A query is made of entries of the table alone, so none names a metric or a
label that does not exist.
"""
