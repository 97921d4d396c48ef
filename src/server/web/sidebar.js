// The list of conversations, its menu, and the drawer that it becomes on narrow screens.
import {find, h, icon, icon_button} from './dom.js';
import {chat_json, chat_markdown, download, file_name} from './export.js';

const narrow = matchMedia('(max-width: 760px)');

export class Sidebar {
  // actions: open(chat), remove(chat), current()
  constructor(store, chats, actions) {
    Object.assign(this, {store, chats, actions});
    this.menu = find('menu');
    find('open-sidebar').addEventListener('click', () => this.toggle(true));
    find('close-sidebar').addEventListener('click', () => this.toggle(false));
    find('backdrop').addEventListener('click', () => this.toggle(false));
    this.menu.addEventListener('keydown', (event) => this.menu_keys(event));
    narrow.addEventListener('change', () => this.toggle(!narrow.matches, false));
    this.toggle(!narrow.matches, false);
  }

  get is_open() {
    return document.documentElement.classList.contains('sidebar-open');
  }
  get is_drawer() {
    return narrow.matches;
  }

  toggle(open = !this.is_open, focus = true) {
    document.documentElement.classList.toggle('sidebar-open', open);
    document.documentElement.classList.toggle('sidebar-moves', focus);
    find('sidebar').inert = !open;
    find('page').inert = open && narrow.matches;
    find('open-sidebar').setAttribute('aria-expanded', open);
    if (focus) find(open ? 'new-chat' : 'open-sidebar').focus();
  }

  close_drawer() {
    if (narrow.matches && this.is_open) this.toggle(false, false);
  }

  render() {
    find('chat-list').replaceChildren(...this.store.list().map((chat) => this.row(chat)));
  }

  row(chat) {
    const is_current = this.actions.current()?.id === chat.id;
    const open = () => {
      this.close_drawer();
      this.actions.open(chat);
    };
    const title =
        h('button', {
          type: 'button',
          class: 'chat-title',
          title: chat.title,
          'aria-current': is_current && 'page',
          on: {click: open}
        },
          h('span', {}, chat.title));
    if (this.chats.run_of(chat)) title.append(h('span', {class: 'running', title: 'Being written'}));
    const more = icon_button(
        'more', `Options for ${chat.title}`, () => this.show_menu(chat, row, more),
        {'aria-haspopup': 'menu', class: 'icon-button more'});
    const row = h('li', {class: is_current ? 'chat-row current' : 'chat-row', 'data-id': chat.id}, title, more);
    return row;
  }

  show_menu(chat, row, anchor) {
    const item = (label, action) =>
        h('button', {
          type: 'button',
          role: 'menuitem',
          on: {
            click: () => {
              this.menu.hidePopover();
              action();
            }
          }
        },
          label);
    this.menu.replaceChildren(
        item('Rename', () => this.rename(chat, row)),
        item('Export as Markdown', () => download(file_name(chat, 'md'), 'text/markdown', chat_markdown(chat))),
        item('Export as JSON', () => download(file_name(chat, 'json'), 'application/json', chat_json(chat))),
        item('Delete', () => this.actions.remove(chat)));
    this.menu.lastChild.classList.add('danger');
    this.menu.showPopover();
    const at = anchor.getBoundingClientRect();
    this.menu.style.left = `${Math.max(8, Math.min(at.left, innerWidth - this.menu.offsetWidth - 8))}px`;
    this.menu.style.top = `${Math.max(8, Math.min(at.bottom + 4, innerHeight - this.menu.offsetHeight - 8))}px`;
    this.menu.firstChild.focus();
    this.menu_anchor = anchor;
  }

  menu_keys(event) {
    const items = [...this.menu.children];
    const at = items.indexOf(document.activeElement);
    const next = {ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1}[event.key];
    if (event.key === 'Escape' || event.key === 'Tab') {
      event.preventDefault();
      event.stopPropagation();
      this.menu.hidePopover();
      this.menu_anchor.focus();
    } else if (next !== undefined) {
      event.preventDefault();
      items.at(next % items.length).focus();
    }
  }

  rename(chat, row) {
    const field = h('input', {type: 'text', class: 'rename', 'aria-label': 'New title', maxlength: '120'});
    field.value = chat.title;
    let done = false;
    const finish = (keep, focus) => {
      if (done) return;
      done = true;
      if (keep && field.value.trim()) {
        chat.title = field.value.trim();
        this.store.save(chat);
      }
      this.render();
      if (focus) find('chat-list').querySelector(`[data-id="${chat.id}"] .chat-title`)?.focus();
    };
    field.addEventListener('keydown', (event) => {
      if (event.key === 'Enter' && !event.isComposing) finish(true, true);
      if (event.key !== 'Escape') return;
      event.stopPropagation();
      finish(false, true);
    });
    field.addEventListener('blur', () => finish(true, false));
    row.replaceChildren(field);
    field.select();
    field.focus();
  }
}
