// Puts the page together.
import {load_model, parse_tools} from './api.js';
import {Chats} from './chat.js';
import {announce, find, h, hide_toast, icon, toast} from './dom.js';
import {fill_help, set_theme, Settings, theme} from './settings.js';
import {Sidebar} from './sidebar.js';
import {Store} from './store.js';
import {Thread} from './thread.js';

// Within reach of the small bundled model; the large one answers them as well.
const examples = [
  'What is a lighthouse?', 'What does “serene” mean?', 'What is 17 plus 25?', 'My name is Ada and I live in Lisbon.'
];

const number = new Intl.NumberFormat('en');
const input = find('input');
const store = new Store();
const settings = new Settings();
let model = {name: '', context: 0};
let chat = store.create();

const chats = new Chats(store, () => ({model: model.name || undefined, settings: settings.values, key: settings.key}));
const index_of = (message) => chat.messages.indexOf(message);
const thread = new Thread(chats, {
  regenerate: (message) => replace_from(message, (index) => chats.regenerate(chat, index)),
  edit: (message, text) => replace_from(message, (index) => chats.edit(chat, index, text)),
  answer: (message, results) => {
    hide_toast();
    chats.answer_calls(chat, results);
  },
  open_settings: () => settings.open(),
});
const sidebar = new Sidebar(store, chats, {open: open_chat, remove: remove_chat, current: () => chat});

// Regenerating and editing cut what follows; that can be undone.
function replace_from(message, action) {
  const index = index_of(message);
  const loses = chat.messages.length - index > 1;
  const undo = action(index);
  thread.jump();
  if (loses) toast('Later messages were replaced.', 'Undo', undo);
  input.focus();
}

function open_chat(next) {
  chat = next;
  if (location.hash.slice(1) !== (store.chats.has(chat.id) ? chat.id : ''))
    history.pushState(null, '', store.chats.has(chat.id) ? `#${chat.id}` : location.pathname);
  thread.open(chat);
  refresh();
  sidebar.render();
  if (!matchMedia('(pointer: coarse)').matches) input.focus();
}

function remove_chat(removed) {
  chats.abandon(removed);
  store.remove(removed);
  if (removed === chat) open_chat(store.create());
  toast(`Deleted “${removed.title}”.`, 'Undo', () => {
    store.save(removed);
    open_chat(removed);
  });
}

function open_from_address() {
  const found = store.chats.get(location.hash.slice(1));
  if (found !== chat) open_chat(found ?? store.create());
}

// Everything around the thread that depends on the state.
function refresh() {
  const running = Boolean(chats.run_of(chat));
  find('send').hidden = running;
  find('stop').hidden = !running;
  find('send').disabled = input.value.trim() === '';
  const {thinking, tools} = settings.values;
  find('toggle-thinking').setAttribute('aria-pressed', thinking);
  const count = parse_tools(tools).tools?.length ?? 0;
  find('tools-pill').hidden = count === 0;
  find('tools-pill').replaceChildren(icon('tool'), count === 1 ? '1 tool' : `${count} tools`);
  document.title = chat.title ? `${chat.title} · Lily` : 'Lily';
  show_meter();
}

function show_meter() {
  const usage = chat.messages.findLast((message) => message.usage)?.usage;
  const meter = find('meter');
  meter.hidden = !usage;
  if (!usage) return;
  const used = usage.prompt_tokens + usage.completion_tokens;
  const cached = usage.prompt_tokens_details?.cached_tokens ?? 0;
  const of = model.context ? ` / ${number.format(model.context)}` : '';
  find('meter-text').textContent = `${number.format(used)}${of} tokens`;
  meter.title = `Prompt ${number.format(usage.prompt_tokens)} (${number.format(cached)} from the cache) + reply ${
      number.format(usage.completion_tokens)} tokens`;
  const share = model.context ? Math.min(used / model.context, 1) : 0;
  find('meter-bar').style.width = `${share * 100}%`;
  meter.classList.toggle('full', share > 0.9);
  meter.setAttribute('aria-valuenow', used);
  meter.setAttribute('aria-valuemax', model.context || used);
  meter.setAttribute('aria-valuetext', find('meter-text').textContent);
}

function send(text) {
  const pending = find('thread').querySelector('.answer textarea');
  if (chats.run_of(chat) || !text.trim()) return;
  if (pending) {
    toast('The model waits for the result of its tool call.', 'Go there', () => pending.focus());
    return;
  }
  input.value = '';
  fit_input();
  chats.send(chat, text);
  if (location.hash.slice(1) !== chat.id) history.pushState(null, '', `#${chat.id}`);
  thread.jump();
  announce('Sent.');
}

function fit_input() {
  input.style.height = 'auto';
  input.style.height = `${input.scrollHeight}px`;
  refresh();
}

async function find_model() {
  const banner = find('offline');
  try {
    model = await load_model(settings.key);
    banner.hidden = true;
  } catch (error) {
    const again = h('button', {type: 'button', class: 'link-button', on: {click: find_model}}, 'Try again');
    const key =
        h('button', {type: 'button', class: 'link-button', on: {click: () => settings.open()}}, 'Enter API key');
    banner.replaceChildren(h('span', {}, error.message), error.status === 401 ? key : again);
    banner.hidden = false;
  }
  find('model').textContent = model.name;
  find('model').title = model.context ? `${model.name}, context of ${number.format(model.context)} tokens` : model.name;
  refresh();
}

function toggle_theme() {
  const dark = theme() === 'system' ? matchMedia('(prefers-color-scheme: dark)').matches : theme() === 'dark';
  set_theme(dark ? 'light' : 'dark');
  announce(dark ? 'Light theme.' : 'Dark theme.');
}

const is_typing = () => document.activeElement?.matches('input, textarea, select');
const open_panel = () => document.querySelector('dialog[open]');

function edit_last() {
  const mine = [...find('thread').querySelectorAll('.message.user .edit')];
  mine.at(-1)?.click();
}

const scroll_keys = {
  PageUp: -0.85,
  PageDown: 0.85
};  // of what is seen

function shortcut(event) {
  if (event.isComposing) return null;
  const control = event.ctrlKey || event.metaKey;
  const key = event.key.toLowerCase();
  if (control && key === '/') return () => (open_panel() ? open_panel().close() : find('help').showModal());
  if (event.key === 'Escape' && !open_panel()) {
    if (sidebar.is_drawer && sidebar.is_open) return () => sidebar.toggle(false);
    return chats.run_of(chat) ? () => chats.stop(chat) : null;
  }
  if (open_panel()) return null;
  if (control && key === ',') return () => settings.open();
  if (control && event.shiftKey && key === 'o') return () => open_chat(store.create());
  if (control && event.shiftKey && key === 's') return () => sidebar.toggle();
  if (control || event.altKey) return null;
  if (document.activeElement === input && scroll_keys[event.key] && input.value === '') {
    return () => find('scroll').scrollBy({top: scroll_keys[event.key] * find('scroll').clientHeight});
  }
  if (event.key === 'ArrowUp' && document.activeElement === input && input.value === '') return edit_last;
  if (is_typing()) return null;
  return {'?': () => find('help').showModal(), '/': () => input.focus()}[event.key];
}

function listen() {
  const coarse = matchMedia('(pointer: coarse)');
  const on_click = {
    'new-chat': () => {
      sidebar.close_drawer();
      open_chat(store.create());
    },
    'toggle-theme': toggle_theme,
    'open-settings': () => settings.open(),
    'tools-pill': () => settings.open(),
    'open-help': () => find('help').showModal(),
    stop: () => {
      chats.stop(chat);
      input.focus();
    },
    'toggle-thinking': () => settings.set('thinking', !settings.values.thinking)
  };
  for (const [id, action] of Object.entries(on_click)) find(id).addEventListener('click', action);
  find('composer').addEventListener('submit', (event) => {
    event.preventDefault();
    send(input.value);
  });
  input.addEventListener('input', fit_input);
  input.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing || coarse.matches)
      return;  // on a phone, Enter is a new line
    event.preventDefault();
    send(input.value);
  });
  document.addEventListener('keydown', (event) => {
    const action = shortcut(event);
    if (!action) return;
    event.preventDefault();
    action();
  });
  addEventListener('popstate', open_from_address);
  addEventListener('pagehide', () => store.list().filter((one) => chats.run_of(one)).forEach((one) => store.save(one)));
}

function follow_state() {
  const if_shown = (action) => (event) => event.detail.chat === chat && action();
  chats.addEventListener('change', if_shown(() => {
                           thread.render();
                           refresh();
                         }));
  chats.addEventListener('progress', if_shown(() => thread.progress()));
  chats.addEventListener('finish', if_shown(() => {
                           thread.finished();
                           refresh();
                         }));
  chats.addEventListener('finish', () => {
    sidebar.render();
    if (!model.name) find_model();
  });
  store.addEventListener('change', () => {
    const now = store.chats.get(chat.id);
    if (now && now !== chat && !chats.run_of(chat)) {  // another tab went on with it
      chat = now;
      thread.open(chat);
      refresh();
    }
    sidebar.render();
  });
  store.addEventListener(
      'full', () => toast('The browser’s storage is full: this conversation is not kept. Export or delete some.'));
  let key = settings.key;
  settings.addEventListener('change', () => {
    refresh();
    if (settings.key !== key) find_model();
    key = settings.key;
  });
}

for (const element of document.querySelectorAll('[data-icon]')) element.prepend(icon(element.dataset.icon));
find('examples')
    .append(...examples.map((text) => h('li', {}, h('button', {type: 'button', on: {click: () => send(text)}}, text))));
fill_help();
listen();
follow_state();
open_chat(store.chats.get(location.hash.slice(1)) ?? chat);
find_model();
