// The settings panel and the list of shortcuts. Every change is kept at once.
import { parse_tools } from './api.js';
import { find, h, icon_button } from './dom.js';
import { default_settings, load_api_key, load_settings, save_api_key, save_settings } from './store.js';

const numbers = [
  { name: 'temperature', label: 'Temperature', min: 0, max: 2, step: 'any', hint: 'Higher is more varied; 0 always takes the likeliest token.' },
  { name: 'top_p', label: 'Top p', min: 0, max: 1, step: 'any', hint: 'Only the likeliest tokens that together reach this probability.' },
  { name: 'top_k', label: 'Top k', min: 0, max: 1000000, step: 1, hint: 'Only this many of the likeliest tokens.' },
  { name: 'max_tokens', label: 'Max tokens', min: 1, max: 10000000, step: 1, hint: 'Longest reply, thinking included.' },
  { name: 'presence_penalty', label: 'Presence penalty', min: -2, max: 2, step: 'any', hint: 'Above 0 steers away from words already used.' },
  { name: 'seed', label: 'Seed', min: 0, max: 9007199254740991, step: 1, hint: 'The same seed and messages give the same reply.' },
];

const example_tools = JSON.stringify([{
  type: 'function',
  function: {
    name: 'get_weather',
    description: 'The weather of a city.',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
}], null, 2);

const shortcuts = [
  ['Enter', 'Send the message'], ['Shift + Enter', 'Start a new line'], ['Esc', 'Stop the reply'], ['/', 'Go to the message box'],
  ['↑', 'Edit your last message (in an empty message box)'], ['Ctrl + Shift + O', 'New chat'], ['Ctrl + Shift + S', 'Show or hide conversations'],
  ['Ctrl + ,', 'Settings'], ['Ctrl + /  or  ?', 'This list'],
];

function panel_head(id, title, panel) {
  return h('header', {}, h('h2', { id }, title), icon_button('close', 'Close', () => panel.close()));
}

// A click on the backdrop closes too.
function close_outside(panel) {
  panel.addEventListener('pointerdown', (event) => {
    const box = panel.getBoundingClientRect();
    const inside = event.clientX >= box.left && event.clientX <= box.right && event.clientY >= box.top && event.clientY <= box.bottom;
    if (event.target === panel && !inside) panel.close();
  });
}

export function fill_help() {
  const panel = find('help');
  const rows = shortcuts.map(([keys, what]) => h('div', {}, h('dt', {}, h('kbd', {}, keys)), h('dd', {}, what)));
  panel.append(panel_head('help-title', 'Keyboard shortcuts', panel), h('dl', { class: 'shortcuts' }, rows));
  close_outside(panel);
}

export function theme() { return document.documentElement.dataset.theme ?? 'system'; }

export function set_theme(value) {
  if (value === 'system') {
    delete document.documentElement.dataset.theme;
    localStorage.removeItem('lily.theme');
  } else {
    document.documentElement.dataset.theme = value;
    localStorage.setItem('lily.theme', value);
  }
}

export class Settings extends EventTarget {
  constructor() {
    super();
    this.values = load_settings();
    this.key = load_api_key();
    this.panel = find('settings');
    this.build();
    this.fill();
    close_outside(this.panel);
  }

  set(name, value) {
    this.values[name] = value;
    save_settings(this.values);
    this.dispatchEvent(new Event('change'));
  }

  open() {
    this.fill();
    this.panel.showModal();
  }

  build() {
    const field = (label, control, hint, properties = {}) => h('label', { class: 'field', ...properties }, h('span', { class: 'field-label' }, label), control, h('span', { class: 'hint' }, hint));
    this.thinking = h('input', { type: 'checkbox', id: 'set-thinking', on: { change: () => this.set('thinking', this.thinking.checked) } });
    this.system = h('textarea', { id: 'set-system', rows: '3', placeholder: 'None', on: { input: () => this.set('system', this.system.value) } });
    this.tools = h('textarea', { id: 'set-tools', class: 'mono', rows: '4', spellcheck: 'false', placeholder: '[ { "type": "function", … } ]', on: { input: () => this.take_tools() } });
    this.tools_error = h('span', { id: 'tools-error', class: 'field-error', role: 'alert' });
    this.api_key = h('input', { type: 'password', id: 'set-key', autocomplete: 'off', placeholder: 'None', on: { change: () => this.take_key() } });
    this.theme = h('select', { id: 'set-theme', on: { change: () => set_theme(this.theme.value) } },
      [['system', 'As the system'], ['light', 'Light'], ['dark', 'Dark']].map(([value, label]) => h('option', { value }, label)));
    this.numbers = numbers.map((number) => this.number_field(number));
    const fill_example = () => {
      this.tools.value = example_tools;
      this.take_tools();
    };
    const body = h('div', { class: 'panel-body' },
      h('label', { class: 'field check' }, this.thinking, h('span', { class: 'field-label' }, 'Thinking'), h('span', { class: 'hint' }, 'The model reasons before it answers.')),
      field('System message', this.system, 'Stands before every conversation.', { class: 'field wide' }),
      h('h3', {}, 'Sampling'), h('p', { class: 'hint' }, 'Empty: the model’s own default.'),
      h('div', { class: 'grid' }, this.numbers.map(({ node }) => node)),
      h('h3', {}, 'Tools'),
      h('div', { class: 'field wide' }, h('label', { for: 'set-tools', class: 'hint' }, 'Functions that the model may call, as JSON. You type their results.'), this.tools, this.tools_error,
        h('div', { class: 'row start' }, h('button', { type: 'button', class: 'button', on: { click: fill_example } }, 'Insert example'))),
      h('h3', {}, 'Page'),
      h('div', { class: 'grid' }, field('Theme', this.theme, ''), field('API key', this.api_key, 'Kept until this tab closes.')));
    const reset = h('button', { type: 'button', id: 'reset-settings', class: 'button', on: { click: () => this.reset() } }, 'Reset to defaults');
    const done = h('button', { type: 'button', class: 'button primary', on: { click: () => this.panel.close() } }, 'Done');
    this.panel.append(panel_head('settings-title', 'Settings', this.panel), body, h('footer', {}, reset, done));
  }

  number_field({ name, label, min, max, step, hint }) {
    const input = h('input', { type: 'number', id: `set-${name}`, min, max, step, placeholder: 'default', inputmode: 'decimal' });
    const error = h('span', { class: 'field-error', role: 'alert' });
    input.addEventListener('input', () => {
      error.textContent = input.validationMessage;
      if (input.validity.valid) this.set(name, input.value === '' ? null : Number(input.value));
    });
    const node = h('label', { class: 'field' }, h('span', { class: 'field-label' }, label), input, h('span', { class: 'hint' }, hint), error);
    return { name, input, error, node };
  }

  fill() {
    const { values } = this;
    this.thinking.checked = values.thinking;
    this.system.value = values.system;
    this.tools.value = values.tools;
    this.api_key.value = this.key;
    this.theme.value = theme();
    for (const { name, input, error } of this.numbers) {
      input.value = values[name] ?? '';
      error.textContent = '';
    }
    this.take_tools();
  }

  // Kept only when they are whole, so that no half-typed list is sent.
  take_tools() {
    const { error } = parse_tools(this.tools.value);
    this.tools_error.textContent = error ?? '';
    this.tools.setAttribute('aria-invalid', Boolean(error));
    if (!error && this.tools.value !== this.values.tools) this.set('tools', this.tools.value);
  }

  take_key() {
    this.key = this.api_key.value.trim();
    save_api_key(this.key);
    this.dispatchEvent(new Event('change'));
  }

  reset() {
    this.values = { ...default_settings };
    save_settings(this.values);
    this.api_key.value = '';
    this.take_key();
    set_theme('system');
    this.fill();
  }
}
