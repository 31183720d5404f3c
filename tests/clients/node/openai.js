// OpenAI's client for JavaScript, by both of its APIs.
import assert from "node:assert/strict";
import OpenAI from "openai";
import { zodResponseFormat, zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";
import { Answer, headersSay, Numbers, noRoute, streamed, UNKNOWN_ROUTE } from "./checking.js";

const { $schema, ...parameters } = z.toJSONSchema(Numbers);
const ADD = { name: "add", description: "Add two numbers.", parameters, strict: true };

const connect = (place) =>
  new OpenAI({ baseURL: `${place.url}/v1`, apiKey: place.key, maxRetries: 0, timeout: 30_000 });

export function chat(place) {
  const { completions } = connect(place).chat;
  const asked = { model: place.route, messages: [{ role: "user", content: place.question }] };
  const wantsSum = {
    ...asked,
    messages: [{ role: "user", content: place.sum }],
    tools: [{ type: "function", function: ADD }],
  };

  async function answered(wants) {
    const [call] = wants.tool_calls;
    const numbers = JSON.parse(call.function.arguments);
    assert.deepEqual([call.function.name, numbers], ["add", place.numbers]);
    const result = { role: "tool", tool_call_id: call.id, content: String(numbers.a + numbers.b) };
    const after = await completions.create({ ...wantsSum, messages: [...wantsSum.messages, wants, result] });
    assert.equal(after.choices[0].message.content, place.summed_up);
  }

  return {
    async text() {
      const answer = await completions.create(asked);
      assert.equal(answer.choices[0].message.content, place.text);
      assert.equal(answer.choices[0].finish_reason, "stop");
      assert.ok(answer.usage.completion_tokens > 0);
    },
    async stream() {
      const wanted = { ...asked, stream: true, stream_options: { include_usage: true } };
      const chunks = await Array.fromAsync(await completions.create(wanted));
      streamed(
        chunks.map((chunk) => chunk.choices[0]?.delta.content),
        place,
      );
      assert.ok(chunks.at(-1).usage.completion_tokens > 0);
    },
    async tools_whole() {
      await answered((await completions.create(wantsSum)).choices[0].message);
    },
    async tools_streamed() {
      await answered(await completions.stream(wantsSum).finalMessage());
    },
    async structured() {
      const answer = await completions.parse({ ...asked, response_format: zodResponseFormat(Answer, "answer") });
      assert.deepEqual(answer.choices[0].message.parsed, place.structured);
    },
    async headers() {
      const { response } = await completions.create(asked).withResponse();
      headersSay(response.headers, place.who);
    },
    async error() {
      await noRoute(OpenAI.NotFoundError, () => completions.create({ ...asked, model: UNKNOWN_ROUTE }));
    },
  };
}

export function responses(place) {
  const { responses } = connect(place);
  const asked = { model: place.route, input: place.question };
  const input = [{ role: "user", content: place.sum }];
  const wantsSum = { model: place.route, input, tools: [{ type: "function", ...ADD }] };

  async function answered(response) {
    const [call] = response.output.filter((item) => item.type === "function_call");
    const numbers = JSON.parse(call.arguments);
    assert.deepEqual([call.name, numbers], ["add", place.numbers]);
    const result = { type: "function_call_output", call_id: call.call_id, output: String(numbers.a + numbers.b) };
    const after = await responses.create({ ...wantsSum, input: [...input, ...response.output, result] });
    assert.equal(after.output_text, place.summed_up);
  }

  return {
    async text() {
      const answer = await responses.create({ ...asked, instructions: "Be brief." });
      assert.deepEqual([answer.output_text, answer.status], [place.text, "completed"]);
      assert.ok(answer.usage.output_tokens > 0);
    },
    async stream() {
      const events = await Array.fromAsync(await responses.create({ ...asked, stream: true }));
      const deltas = events.filter((event) => event.type === "response.output_text.delta");
      streamed(
        deltas.map((event) => event.delta),
        place,
      );
      assert.equal(events.at(-1).type, "response.completed");
      assert.ok(events.at(-1).response.usage.output_tokens > 0);
    },
    async tools_whole() {
      await answered(await responses.create(wantsSum));
    },
    async tools_streamed() {
      await answered(await responses.stream(wantsSum).finalResponse());
    },
    async structured() {
      const answer = await responses.parse({ ...asked, text: { format: zodTextFormat(Answer, "answer") } });
      assert.deepEqual(answer.output_parsed, place.structured);
    },
    async headers() {
      const { response } = await responses.create(asked).withResponse();
      headersSay(response.headers, place.who);
    },
    async error() {
      await noRoute(OpenAI.NotFoundError, () => responses.create({ ...asked, model: UNKNOWN_ROUTE }));
    },
  };
}
