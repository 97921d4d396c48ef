// The inline part of Markdown: a string -> a tree of plain objects. Nothing here touches the document.
//
// Nodes: {kind: 'text' | 'code' | 'math', text}, {kind: 'break'}, {kind: 'strong' | 'em' | 'del', nodes} and
// {kind: 'link', href, nodes}.
//
// `open` says that the text is still being written: then what is not closed yet is shown as if it were closed at the
// end, and markers at the very end, whose meaning the next character decides, are not shown.

const special = /[\\`*_~[!<$\n]|https?:\/\//g;
const punctuation = /[!-/:-@[-`{-~]/;
const bare_url = /https?:\/\/[^\s<>"`]{1,2000}/y;
const angle_url = /<((?:https?:\/\/|mailto:)[^\s<>]+)>/y;
const line_break = /<br\s*\/?>/iy;
const destination = /\( {0,3}(<[^<>\n]*>|[^\s()]*(?:\([^\s()]*\)[^\s()]*)*)(?: {1,3}(?:"[^"\n]*"|'[^'\n]*'))? {0,3}\)/y;
const unfinished_destination = /\([^\s()]*$/y;
const max_depth = 12;

// The URL as it may be put into a link, or null: no scheme but these three, and no way to write another one around
// them.
export function safe_url(text) {
  if (!/^(https?:\/\/|mailto:)/i.test(text)) return null;
  try {
    const url = new URL(text);
    return ['http:', 'https:', 'mailto:'].includes(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

function trim_end(text, characters) {
  let end = text.length;
  while (end > 0 && characters.includes(text[end - 1])) --end;
  return text.slice(0, end);
}

function match_at(pattern, text, at) {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

// '[' -> its ']'. One pass, so that no text takes quadratic time.
function bracket_pairs(text) {
  const pairs = new Map();
  const stack = [];
  for (let i = 0; i < text.length; ++i) {
    if (text[i] === '\\') ++i;
    else if (text[i] === '[') stack.push(i);
    else if (text[i] === ']' && stack.length) pairs.set(stack.pop(), i);
  }
  return pairs;
}

class InlineParser {
  constructor(text, open, links) {
    this.text = open ? trim_end(text, '*_~`\\[!') : text;
    this.open = open;
    this.links = links;
    this.pairs = links ? bracket_pairs(this.text) : new Map();
    this.frames = [{marker: '', count: 0, nodes: []}];  // emphasis that is open, outermost first
    this.missing_closers = new Set();
    this.at = 0;
  }

  parse() {
    const {text} = this;
    while (this.at < text.length) {
      special.lastIndex = this.at;
      const next = special.exec(text);
      const end = next ? next.index : text.length;
      this.add_text(text.slice(this.at, end));
      this.at = end;
      if (next) this.read_special();
    }
    return this.close_all();
  }

  get nodes() {
    return this.frames[this.frames.length - 1].nodes;
  }

  add_text(text) {
    const last = this.nodes[this.nodes.length - 1];
    if (last?.kind === 'text') last.text += text;
    else if (text) this.nodes.push({kind: 'text', text});
  }

  take(length, node) {
    this.nodes.push(node);
    this.at += length;
  }

  read_special() {
    const c = this.text[this.at];
    const read = {
      '\\': 'escape',
      '`': 'code',
      '$': 'dollars',
      '*': 'delimiters',
      _: 'delimiters',
      '~': 'delimiters',
      '[': 'link',
      '!': 'image',
      '<': 'angle',
      '\n': 'newline',
      h: 'url',
      H: 'url'
    }[c];
    if (!this[`read_${read}`]()) this.add_text(this.text[this.at++]);
  }

  read_escape() {
    const next = this.text[this.at + 1];
    if (next === '(') return this.read_until('\\(', '\\)', 'math');
    if (next === '[') return this.read_until('\\[', '\\]', 'math');
    if (next === '\n') return this.take(2, {kind: 'break'}), true;
    if (!next || !punctuation.test(next)) return false;
    this.add_text(next);
    this.at += 2;
    return true;
  }

  // A span from one marker to the next of the other kind; remembers which closers do not come any more.
  read_until(opener, closer, kind) {
    if (this.missing_closers.has(closer)) return false;
    const from = this.at + opener.length;
    let end = this.text.indexOf(closer, from);
    while (kind === 'code' && end >= 0 && this.text[end + closer.length] === '`') {  // a longer run closes nothing
      let past = end;
      while (this.text[past] === '`') ++past;
      end = this.text.indexOf(closer, past);
    }
    if (end < 0 && !this.open) return this.missing_closers.add(closer), false;
    const inner = this.text.slice(from, end < 0 ? undefined : end);
    if (kind === 'math')
      return this.take(inner.length + (end < 0 ? 2 : 4), {kind, text: opener + inner + closer}), true;
    const padded = /^[ \n].*[ \n]$/s.test(inner) && inner.trim() !== '';
    const text = (padded ? inner.slice(1, -1) : inner).replace(/\n/g, ' ');
    return this.take((end < 0 ? from + inner.length : end + closer.length) - this.at, {kind, text}), true;
  }

  read_code() {
    let past = this.at;
    while (this.text[past] === '`') ++past;
    const run = this.text.slice(this.at, past);
    if (this.read_until(run, run, 'code')) return true;
    this.add_text(run);
    this.at = past;
    return true;
  }

  read_dollars() {
    return this.text[this.at + 1] === '$' && this.read_until('$$', '$$', 'math');
  }

  read_newline() {
    const last = this.nodes[this.nodes.length - 1];
    if (last?.kind === 'text') last.text = last.text.trimEnd();
    return this.take(1, {kind: 'break'}), true;
  }

  read_angle() {
    const br = match_at(line_break, this.text, this.at);
    if (br) return this.take(br[0].length, {kind: 'break'}), true;
    const url = this.links && match_at(angle_url, this.text, this.at);
    return Boolean(url) && this.add_link(url[0].length, url[1], [{kind: 'text', text: url[1]}]);
  }

  read_url() {
    const url = this.links && match_at(bare_url, this.text, this.at)?.[0];
    if (!url) return false;
    let shown = trim_end(url, '.,;:!?\'*_~]}|');
    while (shown.endsWith(')') && shown.split(')').length > shown.split('(').length) shown = shown.slice(0, -1);
    return this.add_link(shown.length, shown, [{kind: 'text', text: shown}]);
  }

  read_image() {
    if (this.text[this.at + 1] !== '[') return false;
    ++this.at;  // the page loads no pictures: it links to them
    if (this.read_link()) return true;
    --this.at;
    return false;
  }

  read_link() {
    const end = this.pairs.get(this.at);
    if (end === undefined) return false;
    const inner = this.text.slice(this.at + 1, end);
    const target = match_at(destination, this.text, end + 1);
    if (target) {
      const url = target[1].replace(/^<|>$/g, '');
      return this.add_link(end + 1 + target[0].length - this.at, url, parse_inline(inner, false, false));
    }
    const rest = this.open && match_at(unfinished_destination, this.text, end + 1);
    if (!rest) return false;
    for (const node of parse_inline(inner, false, false)) this.nodes.push(node);
    this.at = this.text.length;
    return true;
  }

  add_link(length, url, nodes) {
    const href = safe_url(url);
    if (href === null) return false;
    return this.take(length, {kind: 'link', href, nodes}), true;
  }

  read_delimiters() {
    const marker = this.text[this.at];
    let past = this.at;
    while (this.text[past] === marker) ++past;
    let count = past - this.at;
    const before = this.text[this.at - 1] ?? ' ';
    const after = this.text[past] ?? ' ';
    this.at = past;
    if (marker === '~' && count !== 2) return this.add_text(marker.repeat(count)), true;
    const {can_open, can_close} = flanks(marker, before, after);
    if (can_close) count = this.close(marker, count);
    if (!count) return true;
    if (can_open && this.frames.length < max_depth) this.frames.push({marker, count, nodes: []});
    else this.add_text(marker.repeat(count));
    return true;
  }

  // Closes what `count` markers close and returns how many are left over.
  close(marker, count) {
    while (count > 0) {
      const index = this.frames.findLastIndex((frame) => frame.marker === marker);
      if (index < 0) return count;
      while (this.frames.length - 1 > index) this.unwrap();
      const frame = this.frames[index];
      const used = Math.min(count, frame.count, 2);
      const node = wrap(marker, used, frame.nodes);
      count -= used;
      frame.count -= used;
      frame.nodes = [node];
      if (frame.count === 0) {
        this.frames.pop();
        this.nodes.push(node);
      }
    }
    return 0;
  }

  // The innermost open emphasis turns out to be none: its marker is text.
  unwrap() {
    const {marker, count, nodes} = this.frames.pop();
    this.add_text(marker.repeat(count));
    for (const node of nodes) this.nodes.push(node);
  }

  close_all() {
    while (this.frames.length > 1) {
      if (!this.open) {
        this.unwrap();
        continue;
      }
      const {marker, count, nodes} = this.frames.pop();
      if (nodes.length)
        this.nodes.push(count > 2 ? wrap(marker, 1, [wrap(marker, 2, nodes)]) : wrap(marker, count, nodes));
    }
    return this.frames[0].nodes;
  }
}

function wrap(marker, count, nodes) {
  if (marker === '~') return {kind: 'del', nodes};
  return {kind: count === 2 ? 'strong' : 'em', nodes};
}

// Whether a run of markers can open or close emphasis, by the characters around it. More generous than the standard,
// which leaves "**标题：**内容" unclosed; underscores inside words mean nothing.
function flanks(marker, before, after) {
  const is_word = (c) => marker === '_' && /[\p{L}\p{N}_]/u.test(c);
  return {can_open: !/\s/.test(after) && !is_word(before), can_close: !/\s/.test(before) && !is_word(after)};
}

export function parse_inline(text, open = false, links = true) {
  return new InlineParser(text, open, links).parse();
}
