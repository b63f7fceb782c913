"""What a cloud states about unhealthy nodes."""

from __future__ import annotations

from tenure.ports.cloud import Cloud
from tenure.providers.contract.bench import Bench, with_cloud
from tenure.schema.semantics.statements import statement_problems


class StatementContract:
    """What a cloud states about unhealthy nodes."""

    @with_cloud
    async def test_what_it_states_about_unhealthy_nodes_can_be_understood(
        self, bench: Bench, cloud: Cloud
    ) -> None:
        """Tenure does not start with a set that could mean two things."""
        assert not [str(problem) for problem in statement_problems(cloud.repair_statements)]
