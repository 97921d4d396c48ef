// Markdown -> elements, also while the text is still arriving.
import {parse_markdown} from './blocks.js';
import {h, icon} from './dom.js';
import {parse_inline} from './inline.js';

function inline_node(node) {
  switch (node.kind) {
    case 'text': return document.createTextNode(node.text);
    case 'code': return h('code', {}, node.text);
    case 'math': return h('span', {class: 'math'}, node.text);
    case 'break': return h('br');
    case 'link':
      return h(
          'a', {href: node.href, target: '_blank', rel: 'noopener noreferrer nofollow'}, node.nodes.map(inline_node));
    default: return h(node.kind, {}, node.nodes.map(inline_node));  // strong, em, del
  }
}

const inline = (text, open) => parse_inline(text, open).map(inline_node);

function code_block(block) {
  const copy = h('button', {type: 'button', class: 'copy-code', 'aria-label': 'Copy code'}, icon('copy'), 'Copy');
  const head = h('div', {class: 'code-head'}, h('span', {class: 'code-language'}, block.language || 'text'), copy);
  return h('div', {class: 'code'}, head, h('pre', {}, h('code', {}, block.text)));
}

function table(block) {
  const row = (tag, cells, open) => h('tr', {}, cells.map((text, column) => {
    const align = block.align[column];
    return h(tag, {class: align && `align-${align}`}, inline(text, open));
  }));
  const last = block.rows.length - 1;
  const head = h('thead', {}, row('th', block.head, block.open && last < 0));
  const body = h('tbody', {}, block.rows.map((cells, i) => row('td', cells, block.open && i === last)));
  return h('div', {class: 'table'}, h('table', {}, head, body));
}

function list_item(blocks) {
  const task = blocks[0]?.kind === 'paragraph' && /^\[([ xX])\]\s+/.exec(blocks[0].text);
  if (!task) return h('li', {}, blocks.map(block_node));
  const text = blocks[0].text.slice(task[0].length);
  const box = h('input', {type: 'checkbox', disabled: true, checked: task[1] !== ' '});
  return h('li', {class: 'task'}, h('p', {}, box, inline(text, blocks[0].open)), blocks.slice(1).map(block_node));
}

function block_node(block) {
  switch (block.kind) {
    case 'heading':
      return h(`h${Math.min(block.level + 2, 6)}`, {class: `heading-${block.level}`}, inline(block.text, block.open));
    case 'code': return code_block(block);
    case 'rule': return h('hr');
    case 'quote': return h('blockquote', {}, block.blocks.map(block_node));
    case 'list': {
      const start = block.ordered && block.start !== 1 ? block.start : null;
      return h(block.ordered ? 'ol' : 'ul', {start}, block.items.map(list_item));
    }
    case 'table': return table(block);
    default: return h('p', {}, inline(block.text, block.open));
  }
}

// Shows a growing text in `root`. Blocks that cannot change any more are neither parsed again nor replaced, so a long
// reply stays cheap and selections in it survive.
export class MarkdownView {
  constructor(root) {
    this.root = root;
    this.reset();
  }

  reset() {
    this.settled = '';  // text of the blocks before `first`
    this.first = 0;     // index of the first block that may change
    this.shown = [];    // {key, block, node}
    this.root.replaceChildren();
  }

  // `open`: more may come.
  update(text, open) {
    if (!text.startsWith(this.settled)) this.reset();
    const rest = text.slice(this.settled.length);
    const blocks = parse_markdown(rest, open);
    blocks.forEach((block, i) => this.show(this.first + i, block, rest));
    for (const {node} of this.shown.splice(this.first + blocks.length)) node.remove();
    if (blocks.length < 3) return;
    const kept = blocks[blocks.length - 2];  // the last one, and the one that it may yet join
    this.settled += rest.slice(0, kept.from);
    this.first += blocks.length - 2;
  }

  show(index, block, text) {
    const key = `${block.kind}${block.open ? '+' : '='}${text.slice(block.from, block.to)}`;
    const old = this.shown[index];
    if (old?.key === key) return;
    let node = old?.node;
    if (old?.block.kind === 'code' && block.kind === 'code' && old.block.language === block.language) {
      node.querySelector('pre > code').textContent = block.text;  // its button stays under the pointer
    } else {
      node = block_node(block);
      if (old) old.node.replaceWith(node);
      else this.root.append(node);
    }
    this.shown[index] = {key, block, node};
  }
}

export function render_markdown(text) {
  const root = h('div', {class: 'markdown'});
  new MarkdownView(root).update(text, false);
  return root;
}
