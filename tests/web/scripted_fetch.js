// Replaces fetch for chat completions: arguments[0] is a list of replies, used up one a request. A reply is {status,
// headers, body} or {events: [...], wait, end}: events are sent `wait` ms apart as server-sent events (strings as they
// are, objects as data), then the stream is closed ('close', the default), broken ('break') or left open ('hang').
window.scripted_replies = arguments[0];
window.scripted_requests = [];
window.scripted_aborts = 0;
window.real_fetch ??= window.fetch;

function scripted_stream({events, wait = 0, end = 'close'}, signal) {
  const bytes = (event) =>
      new TextEncoder().encode(typeof event === 'string' ? event : `data: ${JSON.stringify(event)}\n\n`);
  return new ReadableStream({
    async start(controller) {
      let stopped = false;
      signal?.addEventListener('abort', () => {
        stopped = true;
        ++window.scripted_aborts;
        controller.error(new DOMException('aborted', 'AbortError'));
      });
      for (const event of events) {
        if (wait) await new Promise((resume) => setTimeout(resume, wait));
        if (stopped) return;
        controller.enqueue(bytes(event));
      }
      if (end === 'break') controller.error(new TypeError('network error'));
      if (end === 'close') controller.close();
    },
  });
}

window.fetch = async (url, options) => {
  if (!String(url).endsWith('/v1/chat/completions') || !window.scripted_replies.length)
    return window.real_fetch(url, options);
  window.scripted_requests.push({body: JSON.parse(options.body), headers: options.headers});
  const reply = window.scripted_replies.shift();
  if (reply.unreachable) throw new TypeError('Failed to fetch');
  if (!reply.events) return new Response(reply.body, {status: reply.status, headers: reply.headers});
  return new Response(scripted_stream(reply, options.signal), {headers: {'Content-Type': 'text/event-stream'}});
};
