// The open conversation: keeps a view for each message, follows the growing reply, and lets go when the reader scrolls
// up.
import {announce, copy_from, find} from './dom.js';
import {ReplyView, UserView} from './message.js';

const near_end = 48;  // px from the end that still count as being at the end

export class Thread {
  constructor(chats, actions) {
    this.chats = chats;
    this.actions = actions;
    this.chat = null;
    this.views = new WeakMap();  // message -> view
    this.scroller = find('scroll');
    this.root = find('thread');
    this.following = true;
    this.last_top = 0;
    this.frame = 0;
    this.scroller.addEventListener('scroll', () => this.scrolled(), {passive: true});
    this.root.addEventListener('click', (event) => {
      const button = event.target.closest('.copy-code');
      if (button) copy_from(button, button.closest('.code').querySelector('pre > code').textContent);
    });
    find('jump').addEventListener('click', () => this.jump());
    new ResizeObserver(() => this.follow()).observe(this.scroller);
    new ResizeObserver(() => this.follow()).observe(this.root);
    setInterval(() => this.tick(), 1000);
  }

  open(chat) {
    this.chat = chat;
    this.following = true;
    this.render();
    this.jump();
  }

  view_of(message) {
    let view = this.views.get(message);
    if (!view) {
      view = message.role === 'user' ? new UserView(message, this.actions) : new ReplyView(message, this.actions);
      this.views.set(message, view);
    }
    return view;
  }

  // Results of the calls of the reply at `index`: the tool messages right behind it.
  results_of(index) {
    const results = [];
    for (let i = index + 1; this.chat.messages[i]?.role === 'tool'; ++i) results.push(this.chat.messages[i].content);
    return results;
  }

  render() {
    const {messages} = this.chat;
    const nodes = [];
    messages.forEach((message, i) => {
      if (message.role === 'tool') return;
      const view = this.view_of(message);
      const run = this.chats.run_of(this.chat);
      view.update({
        run: run?.message === message ? run : null,
        results: this.results_of(i),
        is_last: i === messages.length - 1
      });
      nodes.push(view.node);
    });
    const old = [...this.root.children];
    for (const node of old)
      if (!nodes.includes(node)) node.remove();
    nodes.forEach((node, i) => {
      if (this.root.children[i] !== node) this.root.insertBefore(node, this.root.children[i] ?? null);
    });
    find('empty').hidden = messages.length > 0;
    this.root.hidden = messages.length === 0;
  }

  // The reply grew: drawn at most once a frame.
  progress() {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.update_live();
    });
  }

  update_live() {
    const run = this.chats.run_of(this.chat);
    if (!run) return;
    this.view_of(run.message).update({run, results: [], is_last: true});
    this.follow();
  }

  tick() {
    const run = this.chat && this.chats.run_of(this.chat);
    if (run) this.view_of(run.message).tick(run);
  }

  finished() {
    this.render();
    const message = this.chat.messages[this.chat.messages.length - 1];
    const text = this.view_of(message).content?.textContent ?? '';
    const calls = message.tool_calls.map(({name}) => name).join(', ');
    if (!message.error) announce(`Reply finished. ${text.slice(0, 400)}${calls && ` The model calls ${calls}.`}`);
  }

  get at_end() {
    return this.scroller.scrollHeight - this.scroller.scrollTop - this.scroller.clientHeight <= near_end;
  }

  scrolled() {
    const top = this.scroller.scrollTop;
    if (this.at_end) this.following = true;
    else if (top < this.last_top) this.following = false;
    this.last_top = top;
    this.show_jump();
  }

  show_jump() {
    find('jump').hidden = this.following || this.at_end;
  }

  follow() {
    if (this.following) this.scroller.scrollTop = this.scroller.scrollHeight;
    this.show_jump();
  }

  jump() {
    this.following = true;
    this.follow();
  }
}
