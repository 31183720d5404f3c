// All clients for JavaScript, in one process.
import * as aiSdk from "./ai_sdk.js";
import * as anthropic from "./anthropic.js";
import { run } from "./checking.js";
import * as openai from "./openai.js";

globalThis.AI_SDK_LOG_WARNINGS = false;

await run({
  "openai (JavaScript) by chat": openai.chat,
  "openai (JavaScript) by responses": openai.responses,
  "anthropic (JavaScript) by messages": anthropic.messages,
  "ai + @ai-sdk/openai by responses": aiSdk.responses,
  "ai + @ai-sdk/openai by chat": aiSdk.chat,
  "ai + @ai-sdk/openai-compatible by chat": aiSdk.compatible,
  "ai + @ai-sdk/anthropic by messages": aiSdk.messages,
});
