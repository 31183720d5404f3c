// Runs the checks of clients against a gateway and writes down which of them passed, as programs/checking.py does.
import assert from "node:assert/strict";
import { appendFileSync, readFileSync } from "node:fs";
import { z } from "zod";

export const Answer = z.object({ answer: z.number().int(), by: z.string() });
export const Numbers = z.object({ a: z.number().int(), b: z.number().int() });
export const UNKNOWN_ROUTE = "no-such-route";

/** Fail unless the parts of a stream add up to the text; the expert's come as they are generated. */
export function streamed(deltas, place) {
  const parts = deltas.filter(Boolean);
  assert.equal(parts.join(""), place.text);
  assert.ok(parts.length > 1 || place.who === "draft", `more than one part in ${JSON.stringify(parts)}`);
}

/** Fail unless the headers are those of a decision. */
export function headersSay(headers, who) {
  const of = headers instanceof Headers ? Object.fromEntries(headers) : headers;
  assert.equal(of["x-bpac-answered-by"], who);
  assert.match(of["x-bpac-decision"], /^dec-/);
  assert.ok(Number(of["x-bpac-uncertainty"]) >= 0);
}

/** Fail unless the client's own exception has the gateway's message. */
export async function noRoute(kind, ask) {
  await assert.rejects(ask, (error) => {
    assert.ok(error instanceof kind, `${error.constructor.name}: ${error.stack}`);
    assert.match(error.message, /there is no route/);
    return true;
  });
}

/** Check clients, given by name and API as functions from a place to their checks; one line of JSON for each check. */
export async function run(clients) {
  const [, , planFile, out] = process.argv;
  const plan = JSON.parse(readFileSync(planFile, "utf8"));
  for (const place of plan) {
    const checks = clients[`${place.client} by ${place.door}`](place);
    for (const [capability, check] of Object.entries(checks)) {
      let error = "";
      try {
        await check();
      } catch (thrown) {
        error = String(thrown.stack ?? thrown);
      }
      appendFileSync(out, `${JSON.stringify([place.client, place.door, capability, place.who, error])}\n`);
    }
  }
}
