"""What people look at: the board of the terminal, the web page, and what both show.

Reads typed values alone (verdicts, snapshots, the journal, the forecast) and writes nothing. Rooms: ``fleet`` (the
values), ``board`` (the terminal), ``web`` (the page and its server).

May import: nothing of Tenure.
Start reading: fleet/values.py.
"""
