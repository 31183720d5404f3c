// Anthropic's client for JavaScript.
import assert from "node:assert/strict";
import Anthropic from "@anthropic-ai/sdk";
import { zodOutputFormat } from "@anthropic-ai/sdk/helpers/zod";
import { z } from "zod";
import { Answer, headersSay, Numbers, noRoute, streamed, UNKNOWN_ROUTE } from "./checking.js";

const { $schema, ...input_schema } = z.toJSONSchema(Numbers);
const ADD = { name: "add", description: "Add two numbers.", input_schema };

export function messages(place) {
  const { messages } = new Anthropic({ baseURL: place.url, apiKey: place.key, maxRetries: 0, timeout: 30_000 });
  const asked = { model: place.route, max_tokens: 100, messages: [{ role: "user", content: place.question }] };
  const wantsSum = { ...asked, messages: [{ role: "user", content: place.sum }], tools: [ADD] };
  const texts = (message) => message.content.map((block) => block.text);

  async function answered(wants) {
    assert.equal(wants.stop_reason, "tool_use");
    const [call] = wants.content.filter((block) => block.type === "tool_use");
    assert.deepEqual([call.name, call.input], ["add", place.numbers]);
    const result = { type: "tool_result", tool_use_id: call.id, content: String(call.input.a + call.input.b) };
    const told = [
      { role: "assistant", content: wants.content },
      { role: "user", content: [result] },
    ];
    const after = await messages.create({ ...wantsSum, messages: [...wantsSum.messages, ...told] });
    assert.deepEqual(texts(after), [place.summed_up]);
  }

  return {
    async text() {
      const answer = await messages.create({ ...asked, system: "Be brief." });
      assert.deepEqual(texts(answer), [place.text]);
      assert.equal(answer.stop_reason, "end_turn");
      assert.ok(answer.usage.output_tokens > 0);
    },
    async stream() {
      const deltas = [];
      const whole = await messages
        .stream(asked)
        .on("text", (delta) => {
          deltas.push(delta);
        })
        .finalMessage();
      streamed(deltas, place);
      assert.equal(whole.stop_reason, "end_turn");
      assert.ok(whole.usage.output_tokens > 0);
    },
    async tools_whole() {
      await answered(await messages.create(wantsSum));
    },
    async tools_streamed() {
      await answered(await messages.stream(wantsSum).finalMessage());
    },
    async structured() {
      const answer = await messages.parse({ ...asked, output_config: { format: zodOutputFormat(Answer) } });
      assert.deepEqual(answer.parsed_output, place.structured);
    },
    async headers() {
      const { response } = await messages.create(asked).withResponse();
      headersSay(response.headers, place.who);
    },
    async error() {
      await noRoute(Anthropic.NotFoundError, () => messages.create({ ...asked, model: UNKNOWN_ROUTE }));
    },
    async count_tokens() {
      const { model, messages: counted } = asked;
      assert.ok((await messages.countTokens({ model, messages: counted })).input_tokens > 0);
    },
  };
}
