// The server's side of the wire: requests out, parsed events in.

// What went wrong, as the page shows it.
export class ServerError extends Error {
  constructor(message, {status = 0, retry_after = 0} = {}) {
    super(message);
    this.status = status;
    this.retry_after = retry_after;  // seconds
  }
}

const unreachable = 'The server does not answer. Is it still running?';

const headers_for = (key) => (key ? {Authorization: `Bearer ${key}`} : {});

async function error_of(response) {
  const retry_after = Math.ceil(Number(response.headers.get('Retry-After'))) || 0;
  const text = await response.text().catch(() => '');
  let message = '';
  try {
    const {error} = JSON.parse(text);
    message = typeof error === 'string' ? error : error?.message;
  } catch {
    message = text.length < 300 ? text.trim() : '';
  }
  const plain = {401: 'The server asks for an API key.', 503: 'The server is busy.'}[response.status];
  return new ServerError(
      message || plain || `The server answered ${response.status}.`, {status: response.status, retry_after});
}

async function fetch_or_fail(url, options) {
  const response = await fetch(url, options).catch((error) => {
    if (error.name === 'AbortError') throw error;
    throw new ServerError(unreachable);
  });
  if (!response.ok) throw await error_of(response);
  return response;
}

// The first model: {name, context}, context 0 where the server does not say.
export async function load_model(key) {
  const response = await fetch_or_fail('/v1/models', {headers: headers_for(key)});
  const model = (await response.json().catch(() => null))?.data?.[0];
  if (typeof model?.id !== 'string') throw new ServerError('The server lists no model.');
  const context = model.context_length ?? model.max_model_len ?? model.context_window ?? model.meta?.n_ctx;
  return {name: model.id, context: Number(context) || 0};
}

// A reply goes back exactly as it came, reasoning too, so that the server finds it in its cache. Calls that were never
// answered, because the reply was stopped, are left out: they would have to be followed by results. Null: nothing came.
function wire_message(message, next) {
  if (message.role !== 'assistant') return message;
  const {role, content, reasoning} = message;
  const calls = next?.role === 'tool' ? message.tool_calls : [];
  if (!content && !reasoning && !calls.length) return null;
  const wire = {role, content};
  if (reasoning) wire.reasoning_content = reasoning;
  if (!calls.length) return wire;
  const wire_call = (call) => ({id: call.id, type: 'function', function: {name: call.name, arguments: call.arguments}});
  return {...wire, tool_calls: calls.map(wire_call)};
}

export function build_request(model, messages, settings) {
  const system = settings.system.trim() ? [{role: 'system', content: settings.system}] : [];
  const past = messages.map((message, i) => wire_message(message, messages[i + 1])).filter(Boolean);
  const request = {
    model,
    messages: [...system, ...past],
    stream: true,
    stream_options: {include_usage: true},
    chat_template_kwargs: {enable_thinking: settings.thinking},
  };
  for (const name of ['temperature', 'top_p', 'top_k', 'max_tokens', 'presence_penalty', 'seed']) {
    if (settings[name] !== null) request[name] = settings[name];
  }
  const {tools} = parse_tools(settings.tools);
  if (tools?.length) request.tools = tools;
  return request;
}

// A JSON text -> {tools} or {error}. Empty text: no tools.
export function parse_tools(text) {
  if (!text.trim()) return {tools: []};
  let tools;
  try {
    tools = JSON.parse(text);
  } catch (error) {
    return {error: `Not JSON: ${error.message}`};
  }
  if (!Array.isArray(tools)) return {error: 'Expected a list of tools: [ { … } ]'};
  for (const [i, tool] of tools.entries()) {
    if (tool?.type !== 'function') return {error: `Tool ${i + 1}: expected "type": "function"`};
    if (!/^[\w.-]{1,64}$/.test(tool.function?.name ?? ''))
      return {error: `Tool ${i + 1}: "function" needs a "name" of letters, digits, - and _`};
    const {parameters} = tool.function;
    if (parameters !== undefined && (typeof parameters !== 'object' || parameters === null))
      return {error: `Tool ${i + 1}: "parameters" must be a JSON schema`};
  }
  return {tools};
}

// Bytes -> the data of each server-sent event; comments and other fields are passed over.
export async function* read_events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  let data = [];
  for (;;) {
    const {value, done} = await reader.read();
    if (done) return;
    text += value;
    const lines = text.split(/\r\n|\n|\r(?!$)/);
    text = lines.pop();
    for (const line of lines) {
      if (line === '') {
        if (data.length) yield data.join('\n');
        data = [];
      } else if (line.startsWith('data:')) {
        data.push(line.slice(line[5] === ' ' ? 6 : 5));
      }
    }
  }
}

// Yields the chunks of one reply; throws a ServerError where the stream breaks or says that it failed.
export async function* stream_chat(request, key, signal) {
  const options = {
    method: 'POST',
    headers: {'Content-Type': 'application/json', ...headers_for(key)},
    body: JSON.stringify(request),
    signal
  };
  const response = await fetch_or_fail('/v1/chat/completions', options);
  const broken = new ServerError('The connection broke. What had arrived is kept.');
  let finished = false;
  try {
    for await (const data of read_events(response.body)) {
      if (data === '[DONE]') return;
      const chunk = JSON.parse(data);
      if (chunk.error)
        throw new ServerError(chunk.error.message ?? String(chunk.error), {status: Number(chunk.error.code) || 0});
      finished ||= Boolean(chunk.choices?.[0]?.finish_reason);
      yield chunk;
    }
  } catch (error) {
    throw error.name === 'AbortError' || error instanceof ServerError ? error : broken;
  }
  if (!finished) throw broken;
}
