// The AI SDK with its providers: the same checks for each of them.
import assert from "node:assert/strict";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { APICallError, generateText, isStepCount, Output, streamText, tool } from "ai";
import { Answer, headersSay, Numbers, noRoute, streamed, UNKNOWN_ROUTE } from "./checking.js";

function checks(place, modelOf) {
  const asked = { maxRetries: 0, model: modelOf(place.route), prompt: place.question };

  // The SDK calls the tool and sends its result by itself.
  function withTool() {
    const calls = [];
    const execute = async (numbers) => {
      calls.push(numbers);
      return numbers.a + numbers.b;
    };
    const tools = { add: tool({ description: "Add two numbers.", inputSchema: Numbers, execute }) };
    return [calls, { ...asked, prompt: place.sum, tools, stopWhen: isStepCount(3) }];
  }

  return {
    async text() {
      const answer = await generateText(asked);
      assert.deepEqual([answer.text, answer.finishReason], [place.text, "stop"]);
      assert.ok(answer.usage.outputTokens > 0);
    },
    async stream() {
      const answer = streamText(asked);
      streamed(await Array.fromAsync(answer.textStream), place);
      assert.equal(await answer.finishReason, "stop");
      assert.ok((await answer.usage).outputTokens > 0);
    },
    async tools_whole() {
      const [calls, wanted] = withTool();
      const answer = await generateText(wanted);
      assert.deepEqual([calls, answer.text], [[place.numbers], place.summed_up]);
    },
    async tools_streamed() {
      const [calls, wanted] = withTool();
      const answer = streamText(wanted);
      await answer.consumeStream();
      assert.deepEqual([calls, await answer.text], [[place.numbers], place.summed_up]);
    },
    async structured() {
      const answer = await generateText({ ...asked, output: Output.object({ schema: Answer }) });
      assert.deepEqual(answer.output, place.structured);
    },
    async headers() {
      headersSay((await generateText(asked)).response.headers, place.who);
    },
    async error() {
      await noRoute(APICallError, () => generateText({ ...asked, model: modelOf(UNKNOWN_ROUTE) }));
    },
  };
}

const openai = (place) => createOpenAI({ baseURL: `${place.url}/v1`, apiKey: place.key });

export const responses = (place) => checks(place, openai(place));
export const chat = (place) => checks(place, openai(place).chat);

export function compatible(place) {
  const options = { supportsStructuredOutputs: true, includeUsage: true };
  return checks(
    place,
    createOpenAICompatible({ name: "bpac", baseURL: `${place.url}/v1`, apiKey: place.key, ...options }),
  );
}

export const messages = (place) => checks(place, createAnthropic({ baseURL: `${place.url}/v1`, apiKey: place.key }));
