// Conversations at work: sending, stopping, and what may be done to past messages. Knows the store and the server, not
// the page: the page listens to `change` (messages came or went), `progress` (the reply grew) and `finish`, each with
// `detail.chat`.
import {build_request, ServerError, stream_chat} from './api.js';

const save_interval = 1000;  // ms between saves of a growing reply

function new_reply() {
  return {
    role: 'assistant',
    content: '',
    reasoning: '',
    tool_calls: [],
    finish: null,
    error: null,
    usage: null,
    timings: null,
    thought_seconds: null
  };
}

function add_tool_call(message, delta) {
  const calls = message.tool_calls;
  const index = delta.index ??
      (delta.id && delta.id !== calls[calls.length - 1]?.id ? calls.length : Math.max(calls.length - 1, 0));
  while (calls.length <= index) calls.push({id: '', name: '', arguments: ''});
  const call = calls[index];
  call.id ||= delta.id ?? '';
  call.name += delta.function?.name ?? '';
  call.arguments += delta.function?.arguments ?? '';
}

function add_chunk(message, chunk) {
  if (chunk.usage) message.usage = chunk.usage;
  if (chunk.timings) message.timings = chunk.timings;
  const choice = chunk.choices?.[0];
  if (!choice) return;
  const delta = choice.delta ?? {};
  message.reasoning += delta.reasoning_content ?? delta.reasoning ?? '';  // a server may send both names
  message.content += delta.content ?? '';
  for (const call of delta.tool_calls ?? []) add_tool_call(message, call);
  if (choice.finish_reason) message.finish = choice.finish_reason;
}

export function title_of(text) {
  const line = text.trim().split('\n')[0].replace(/\s+/g, ' ');
  return line.length > 60 ? `${line.slice(0, 59)}…` : line || 'Untitled';
}

export class Chats extends EventTarget {
  // `context` gives {model, settings, key} of the moment.
  constructor(store, context) {
    super();
    this.store = store;
    this.context = context;
    this.runs = new Map();  // chat id -> {controller, started, first_token, thinking_since}
  }

  emit(name, chat) {
    this.dispatchEvent(new CustomEvent(name, {detail: {chat}}));
  }

  run_of(chat) {
    return this.runs.get(chat.id);
  }

  send(chat, text) {
    if (!chat.title) chat.title = title_of(text);
    chat.messages.push({role: 'user', content: text});
    return this.reply(chat);
  }

  stop(chat) {
    this.run_of(chat)?.controller.abort();
  }

  // Stops and forgets: what the run would still have done to the conversation does not happen.
  abandon(chat) {
    this.stop(chat);
    this.runs.delete(chat.id);
  }

  // Drops the messages from `index` on; returns a function that brings them back.
  cut(chat, index) {
    this.abandon(chat);
    const removed = chat.messages.slice(index);
    const kept = chat.messages.slice(0, index);
    chat.messages = kept.slice();
    return () => {
      this.abandon(chat);
      chat.messages = [...kept, ...removed];
      this.store.touch(chat);
      this.emit('change', chat);
    };
  }

  regenerate(chat, index) {
    const undo = this.cut(chat, index);
    this.reply(chat);
    return undo;
  }

  edit(chat, index, text) {
    const undo = this.cut(chat, index);
    this.send(chat, text);
    return undo;
  }

  // The results of all calls of the last message, in order.
  answer_calls(chat, results) {
    const {tool_calls} = chat.messages[chat.messages.length - 1];
    tool_calls.forEach((call, i) => chat.messages.push({role: 'tool', tool_call_id: call.id, content: results[i]}));
    return this.reply(chat);
  }

  async reply(chat) {
    const {model, settings, key} = this.context();
    const request = build_request(model, chat.messages, settings);
    const message = new_reply();
    const run = {controller: new AbortController(), started: performance.now(), first_token: 0, saved: 0, message};
    chat.messages.push(message);
    this.runs.set(chat.id, run);
    this.store.touch(chat);
    this.emit('change', chat);
    try {
      for await (const chunk of stream_chat(request, key, run.controller.signal)) {
        if (run.controller.signal.aborted) break;
        this.take(chat, run, chunk);
      }
      if (run.controller.signal.aborted) message.finish = 'stopped';
    } catch (error) {
      if (run.controller.signal.aborted) message.finish = 'stopped';
      else
        message.error =
            {message: error.message, status: error.status ?? 0, retry_after: error.retry_after ?? 0, at: Date.now()};
      if (!(error instanceof ServerError) && !run.controller.signal.aborted) console.error(error);
    }
    this.finish(chat, run);
  }

  take(chat, run, chunk) {
    const {message} = run;
    add_chunk(message, chunk);
    const now = performance.now();
    if (!run.first_token && (message.reasoning || message.content || message.tool_calls.length)) run.first_token = now;
    const thinking = message.reasoning && !message.content && !message.tool_calls.length;
    if (thinking || (message.reasoning && message.thought_seconds === null))
      message.thought_seconds = (now - run.first_token) / 1000;
    if (now - run.saved > save_interval) {
      run.saved = now;
      this.store.save(chat);
    }
    this.emit('progress', chat);
  }

  finish(chat, run) {
    const {message} = run;
    const seconds = (performance.now() - run.first_token) / 1000;
    if (message.usage && run.first_token && seconds > 0)
      message.measured_rate = message.usage.completion_tokens / seconds;
    if (this.runs.get(chat.id) !== run) return;  // cut away meanwhile
    this.runs.delete(chat.id);
    this.store.touch(chat);
    this.emit('finish', chat);
  }
}
