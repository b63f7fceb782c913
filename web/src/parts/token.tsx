import { useEffect, useRef } from "preact/hooks";

/** Asks for a bearer token. It is kept in memory: closing or reloading the page forgets it. */
export function TokenForm({ why, use }: { why: string; use: (token: string) => void }) {
  const box = useRef<HTMLInputElement>(null);
  useEffect(() => box.current?.focus(), []);
  const sent = (event: Event): void => {
    event.preventDefault();
    const token = box.current?.value.trim() ?? "";
    if (box.current) box.current.value = "";
    if (token !== "") use(token);
  };
  return (
    <main class="alone">
      <h1>Tenure</h1>
      <p>This page asks for a Kubernetes token that may list pods, nodes and nodepools.</p>
      {why !== "" && <p class="problem" role="alert">{why}</p>}
      <form class="token" onSubmit={sent}>
        <label for="token">Token</label>
        <input id="token" ref={box} type="password" autocomplete="off" spellcheck={false} required />
        <button type="submit" class="primary">Show the cluster</button>
      </form>
      <p class="quiet">For example: <code>kubectl create token NAME --duration 1h</code>. The token stays in the memory of this page, and is gone when you close or reload it.</p>
    </main>
  );
}
