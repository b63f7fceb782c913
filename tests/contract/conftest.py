"""Runs the contract suite through every door there is."""

from __future__ import annotations

import inspect

import pytest

from tests.contract.doors import DOORS, Door


@pytest.fixture(params=sorted(DOORS), ids=lambda name: f"through the {name} door")
def api(request: pytest.FixtureRequest) -> Door:
    return DOORS[request.param]()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """A test that is a coroutine is run by the door it came through."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    door = pyfuncitem.funcargs["api"]
    assert isinstance(door, Door)
    door.run(pyfuncitem.obj(**arguments))
    return True
