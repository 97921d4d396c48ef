// One message on the page. A view is made once for a message and updated while that grows.
import {copy_from, h, icon, icon_button} from './dom.js';
import {MarkdownView} from './markdown.js';

const number = new Intl.NumberFormat('en');

// JSON, whole or cut off anywhere, with line breaks and indentation.
export function pretty_json(text) {
  let out = '';
  let depth = 0;
  let quoted = false;
  const line = () => `\n${'  '.repeat(Math.min(depth, 20))}`;
  for (let i = 0; i < text.length; ++i) {
    const c = text[i];
    if (quoted) {
      out += c;
      if (c === '\\') out += text[++i] ?? '';
      else if (c === '"') quoted = false;
    } else if (c === '"') {
      quoted = true;
      out += c;
    } else if (c === '{' || c === '[') {
      const empty = /^\s*[}\]]/.exec(text.slice(i + 1, i + 20));
      if (empty) i += empty[0].length;
      else ++depth;
      out += empty ? c + empty[0].trim() : c + line();
    } else if (c === '}' || c === ']') {
      depth = Math.max(depth - 1, 0);
      out += line() + c;
    } else if (c === ',') {
      out += c + line();
    } else if (c === ':') {
      out += ': ';
    } else if (!/\s/.test(c)) {
      out += c;
    }
  }
  return out;
}

function stats_of({usage, timings, measured_rate}) {
  if (!usage) return '';
  const rate = timings?.predicted_per_second ?? measured_rate;
  const cached = usage.prompt_tokens_details?.cached_tokens ?? 0;
  const parts = [`${number.format(usage.completion_tokens)} tokens`];
  if (rate > 0) parts.push(`${number.format(rate < 100 ? Math.round(rate * 10) / 10 : Math.round(rate))} tok/s`);
  parts.push(`prompt ${number.format(usage.prompt_tokens)}${cached ? `, ${number.format(cached)} cached` : ''}`);
  if (timings?.prompt_per_second > 0)
    parts.push(`read at ${number.format(Math.round(timings.prompt_per_second))} tok/s`);
  return parts.join(' · ');
}

export class UserView {
  // actions: edit(message, text)
  constructor(message, actions) {
    this.message = message;
    this.actions = actions;
    this.node = h('article', {class: 'message user', 'aria-label': 'You'});
    this.show();
  }

  show() {
    const copy = icon_button('copy', 'Copy', () => copy_from(copy, this.message.content));
    const edit = icon_button('edit', 'Edit and resend', () => this.edit(), {class: 'icon-button edit'});
    this.node.replaceChildren(
        h('div', {class: 'bubble'}, this.message.content), h('footer', {class: 'actions'}, copy, edit));
  }

  edit() {
    const area = h('textarea', {class: 'edit-box', 'aria-label': 'Edit message', rows: '3'});
    const done = () => {
      this.show();
      this.node.querySelector('.edit').focus();
    };
    const send = () => {
      if (!area.value.trim()) return;
      this.show();
      this.actions.edit(this.message, area.value);
    };
    const keys = (event) => {
      if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        send();
      } else if (event.key === 'Escape') {
        event.stopPropagation();
        done();
      }
    };
    area.value = this.message.content;
    area.addEventListener('keydown', keys);
    const row =
        h('div', {class: 'row'}, h('span', {class: 'hint'}, 'What follows this message is replaced.'),
          h('button', {type: 'button', class: 'button', on: {click: done}}, 'Cancel'),
          h('button', {type: 'button', class: 'button primary', on: {click: send}}, 'Send'));
    this.node.replaceChildren(h('div', {class: 'editor'}, area, row));
    area.style.height = `${Math.min(area.scrollHeight + 4, innerHeight / 2)}px`;
    area.focus();
  }

  update() {}
}

export class ReplyView {
  // actions: regenerate(message), answer(message, results), open_settings()
  constructor(message, actions) {
    this.message = message;
    this.actions = actions;
    this.cards = [];
    this.thoughts_label = h('span', {class: 'thinking-label'});
    this.thoughts_body = h('div', {class: 'markdown thoughts'});
    const summary = h('summary', {}, icon('chevron'), this.thoughts_label);
    this.thoughts =
        h('details', {class: 'thinking', hidden: true, on: {toggle: () => this.show_thoughts()}}, summary,
          this.thoughts_body);
    this.thoughts_view = new MarkdownView(this.thoughts_body);
    this.waiting =
        h('p', {class: 'waiting', hidden: true},
          h('span', {class: 'dots', 'aria-hidden': 'true'}, h('i'), h('i'), h('i')), h('span'));
    this.content = h('div', {class: 'markdown content'});
    this.content_view = new MarkdownView(this.content);
    this.calls = h('div', {class: 'calls'});
    this.notice = h('div', {class: 'notice-slot'});
    this.stats = h('span', {class: 'stats'});
    const copy = icon_button('copy', 'Copy reply', () => copy_from(copy, message.content.trim()));
    const again =
        icon_button('retry', 'Regenerate', () => actions.regenerate(message), {class: 'icon-button regenerate'});
    this.footer = h('footer', {class: 'actions'}, copy, again, this.stats);
    this.node =
        h('article', {class: 'message assistant', 'aria-label': 'Lily'}, this.thoughts, this.waiting, this.content,
          this.calls, this.notice, this.footer);
  }

  // run: of a reply that is being written, else null. results: of its tool calls so far. is_last: no message follows.
  update({run, results, is_last}) {
    const {message} = this;
    this.live = Boolean(run);
    this.node.classList.toggle('live', this.live);
    this.node.classList.toggle('last', is_last);
    this.tick(run);
    this.thoughts.hidden = !message.reasoning.trim();
    this.show_thoughts();
    this.content_view.update(message.content.replace(/^\s+/, ''), this.live);
    this.show_calls(results);
    this.footer.hidden = this.live || Boolean(message.error && !message.content);
    this.stats.textContent = stats_of(message);
    if (this.live) this.notice.replaceChildren();
    else this.show_notice(results, is_last);
  }

  // What changes with time alone.
  tick(run) {
    const {message} = this;
    const silent = this.live && !message.content && !message.reasoning && !message.tool_calls.length;
    this.waiting.hidden = !silent;
    if (run && silent) {
      const seconds = Math.floor((performance.now() - run.started) / 1000);
      this.waiting.lastChild.textContent = seconds < 2 ? '' : `Reading the prompt… ${seconds} s`;
    }
    const thinking = run && !message.content && !message.tool_calls.length;
    const seconds =
        thinking && run.first_token ? (performance.now() - run.first_token) / 1000 : message.thought_seconds ?? 0;
    this.thoughts.classList.toggle('live', Boolean(thinking));
    this.thoughts_label.textContent = thinking ? (seconds < 1 ? 'Thinking…' : `Thinking… ${Math.floor(seconds)} s`) :
        seconds < 1                                           ? 'Thought for a moment' :
                                                                `Thought for ${Math.round(seconds)} s`;
  }

  show_thoughts() {
    const writing = this.live && !this.message.content;
    if (this.thoughts.open) this.thoughts_view.update(this.message.reasoning.trim(), writing);
  }

  show_calls(results) {
    this.message.tool_calls.forEach((call, i) => {
      this.cards[i] ??= this.add_card();
      const {name, state, code, result} = this.cards[i];
      name.textContent = call.name || '…';
      state.textContent = results[i] !== undefined ? 'answered' : this.live ? 'being written…' : '';
      const text = pretty_json(call.arguments);
      if (code.textContent !== text) code.textContent = text;
      result.hidden = results[i] === undefined;
      result.lastChild.textContent = results[i] ?? '';
    });
  }

  add_card() {
    const name = h('code', {class: 'call-name'});
    const state = h('span', {class: 'call-state'});
    const code = h('code');
    const result = h('div', {class: 'call-result', hidden: true}, h('span', {class: 'call-label'}, 'Result'), h('pre'));
    this.calls.append(
        h('details', {class: 'call'}, h('summary', {}, icon('chevron'), icon('tool'), name, state),
          h('span', {class: 'call-label'}, 'Arguments'), h('pre', {}, code), result));
    return {name, state, code, result};
  }

  show_notice(results, is_last) {
    const {message} = this;
    if (message.error) return this.show_error(is_last);
    const ended = message.finish === 'tool_calls' || message.finish === 'stop';
    const pending = is_last && ended && results.length < message.tool_calls.length;
    if (pending) return this.notice.querySelector('.answer') ?? this.notice.replaceChildren(this.answer_form());
    const note = {
      stopped: 'Stopped.',
      length: 'Cut off at the limit of tokens.',
      content_filter: 'Cut off by the server.'
    }[message.finish];
    const unfinished = message.finish === null ? 'Cut off: the page was left while this was being written.' : null;
    this.notice.replaceChildren(...[note ?? unfinished].filter(Boolean).map((text) => h('p', {class: 'note'}, text)));
  }

  show_error(is_last) {
    const {error} = this.message;
    const retry =
        h('button', {type: 'button', class: 'button', on: {click: () => this.actions.regenerate(this.message)}},
          icon('retry'), h('span', {}, 'Retry'));
    const key = error.status === 401 &&
        h('button', {type: 'button', class: 'button', on: {click: this.actions.open_settings}}, 'Enter API key');
    const box =
        h('div', {class: 'error', role: 'alert'}, h('p', {}, error.message),
          h('div', {class: 'row'}, key || null, is_last ? retry : null));
    this.notice.replaceChildren(box);
    const count_down = () => {
      const left = Math.ceil(error.retry_after - (Date.now() - error.at) / 1000);
      retry.lastChild.textContent = left > 0 ? `Retry (ready in ${left} s)` : 'Retry';
      if (left > 0 && box.parentNode) setTimeout(count_down, 500);
    };
    count_down();
  }

  answer_form() {
    const boxes = this.message.tool_calls.map(
        (call) => h(
            'textarea', {rows: '2', 'aria-label': `Result of ${call.name}`, placeholder: `What ${call.name} returns`}));
    const send = (event) => {
      event.preventDefault();
      this.actions.answer(this.message, boxes.map((box) => box.value));
    };
    const keys = (event) => {
      if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) send(event);
    };
    const fields = this.message.tool_calls.map(
        (call, i) => h('label', {}, h('span', {}, 'Result of ', h('code', {}, call.name)), boxes[i]));
    return h(
        'form', {class: 'answer', on: {submit: send, keydown: keys}}, fields,
        h('div', {class: 'row'}, h('span', {class: 'hint'}, 'The page runs no tools: type what the tool would return.'),
          h('button', {class: 'button primary'}, 'Continue')));
  }
}
