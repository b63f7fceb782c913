"""What things are: frozen values, decoded straight from bytes.

May import: nothing of Tenure.
Start reading: api/nodeclaim.py.
"""
