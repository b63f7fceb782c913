import { type Forecast, type Rotation, notInTime } from "../../forecast.ts";
import { Subject, When } from "../../parts/small.tsx";
import { count, instant, plural, span } from "../../words.ts";

/** What windows and budgets do not let finish, and what holds it up. */
export function NotInTime({ forecast }: { forecast: Forecast }) {
  const late = forecast.pools.flatMap((pool) => pool.rotations.filter(notInTime).map((rotation) => ({ pool: pool.name, rotation })));
  const problems = forecast.pools.filter((pool) => pool.problem !== null);
  return (
    <section class={late.length + problems.length > 0 ? "card warning" : "card"} aria-label="What cannot finish in time">
      <h2>What cannot finish in time</h2>
      {late.length === 0 && problems.length === 0 && <p>Everything that is due can finish.</p>}
      {late.map(({ pool, rotation }) => <Late key={`${pool} ${rotation.reason}`} pool={pool} rotation={rotation} until={forecast.until} />)}
      {problems.map((pool) => <p key={pool.name}>NodePool <Subject of={`NodePool/${pool.name}`}>{pool.name}</Subject>: {pool.problem}</p>)}
    </section>
  );
}

function Late({ pool, rotation, until }: { pool: string; rotation: Rotation; until: string }) {
  const { due, again, started, waiting, never, otherwise, late, lateBySeconds } = rotation;
  const kept = [waiting > 0 ? `${count(waiting)} still blocked then` : "", never > 0 ? `${count(never)} blocked for ever` : "",
    otherwise > 0 ? `${count(otherwise)} ${otherwise === 1 ? "starts or waits" : "start or wait"} for another reason` : ""].filter(Boolean);
  return (
    <article class="late">
      <h3>NodePool <Subject of={`NodePool/${pool}`}>{pool}</Subject>, {rotation.reason}</h3>
      <p>
        {again > 0
          ? `${plural(due - again, "node")} and ${plural(again, "replacement that expires", "replacements that expire")} again are due; ${count(started)}`
          : `${count(started)} of ${plural(due, "node")} due`} can start until {instant(until)}{rotation.lastStart !== null && <>, the last <When at={rotation.lastStart} /></>}
        {kept.length > 0 && `; ${kept.join(", ")}`}
        {late > 0 && <>; {plural(late, "node becomes", "nodes become")} older than <code>expireAfter</code>, by up to {span(lateBySeconds * 1000)}</>}.
      </p>
      {rotation.why.map((one) => <p key={one.message} class="because">{plural(one.nodes, "node")}: {one.message}</p>)}
    </article>
  );
}
