// The settings panel and the list of shortcuts. Every change is kept at once.
import {parse_tools} from './api.js';
import {find, h, icon_button} from './dom.js';
import {default_settings, load_api_key, load_settings, save_api_key, save_settings} from './store.js';

const numbers = [
  {
    name: 'temperature',
    label: 'Temperature',
    min: 0,
    max: 2,
    step: 'any',
    hint: 'Higher is more varied; 0 always takes the likeliest token.'
  },
  {
    name: 'top_p',
    label: 'Top p',
    min: 0,
    max: 1,
    step: 'any',
    hint: 'Only the likeliest tokens that together reach this probability.'
  },
  {name: 'top_k', label: 'Top k', min: 0, max: 1000000, step: 1, hint: 'Only this many of the likeliest tokens.'},
  {name: 'max_tokens', label: 'Max tokens', min: 1, max: 10000000, step: 1, hint: 'Longest reply, thinking included.'},
  {
    name: 'presence_penalty',
    label: 'Presence penalty',
    min: -2,
    max: 2,
    step: 'any',
    hint: 'Above 0 steers away from words already used.'
  },
  {
    name: 'seed',
    label: 'Seed',
    min: 0,
    max: 9007199254740991,
    step: 1,
    hint: 'The same seed and messages give the same reply.'
  },
];

const example_tools = JSON.stringify(
    [{
      type: 'function',
      function: {
        name: 'get_weather',
        description: 'The weather of a city.',
        parameters: {type: 'object', properties: {city: {type: 'string'}}, required: ['city']},
      },
    }],
    null, 2);

const shortcuts = [
  ['Enter', 'Send the message'],
  ['Shift + Enter', 'Start a new line'],
  ['Esc', 'Stop the reply'],
  ['/', 'Go to the message box'],
  ['↑', 'Edit your last message (in an empty message box)'],
  ['Page Up / Page Down', 'Scroll the conversation'],
  ['Ctrl + Shift + O', 'New chat'],
  ['Ctrl + Shift + S', 'Show or hide conversations'],
  ['Ctrl + ,', 'Settings'],
  ['Ctrl + /  or  ?', 'This list'],
];

function panel_head(id, title, panel) {
  return h('header', {}, h('h2', {id}, title), icon_button('close', 'Close', () => panel.close()));
}

// A click on the backdrop closes too.
function close_outside(panel) {
  panel.addEventListener('pointerdown', (event) => {
    const box = panel.getBoundingClientRect();
    const inside = event.clientX >= box.left && event.clientX <= box.right && event.clientY >= box.top &&
        event.clientY <= box.bottom;
    if (event.target === panel && !inside) panel.close();
  });
}

export function fill_help() {
  const panel = find('help');
  const rows = shortcuts.map(([keys, what]) => h('div', {}, h('dt', {}, h('kbd', {}, keys)), h('dd', {}, what)));
  panel.append(panel_head('help-title', 'Keyboard shortcuts', panel), h('dl', {class: 'shortcuts'}, rows));
  close_outside(panel);
}

export function theme() {
  return document.documentElement.dataset.theme ?? 'system';
}

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
    this.numbers = numbers.map((number) => this.number_field(number));
    this.listen();
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

  listen() {
    const on = (id, event, action) => find(id).addEventListener(event, action);
    on('set-thinking', 'change', ({target}) => this.set('thinking', target.checked));
    on('set-system', 'input', ({target}) => this.set('system', target.value));
    on('set-tools', 'input', () => this.take_tools());
    on('set-theme', 'change', ({target}) => set_theme(target.value));
    on('set-key', 'change', () => this.take_key());
    on('example-tools', 'click', () => {
      find('set-tools').value = example_tools;
      this.take_tools();
    });
    on('reset-settings', 'click', () => this.reset());
    on('close-settings', 'click', () => this.panel.close());
    on('settings-done', 'click', () => this.panel.close());
  }

  number_field({name, label, min, max, step, hint}) {
    const input =
        h('input', {type: 'number', id: `set-${name}`, min, max, step, placeholder: 'default', inputmode: 'decimal'});
    const error = h('span', {class: 'field-error', role: 'alert'});
    input.addEventListener('input', () => {
      error.textContent = input.validationMessage;
      if (input.validity.valid) this.set(name, input.value === '' ? null : Number(input.value));
    });
    const title = h('span', {class: 'field-label'}, label);
    find('numbers').append(h('label', {class: 'field'}, title, input, h('span', {class: 'hint'}, hint), error));
    return {name, input, error};
  }

  fill() {
    const {values} = this;
    find('set-thinking').checked = values.thinking;
    find('set-system').value = values.system;
    find('set-tools').value = values.tools;
    find('set-key').value = this.key;
    find('set-theme').value = theme();
    for (const {name, input, error} of this.numbers) {
      input.value = values[name] ?? '';
      error.textContent = '';
    }
    this.take_tools();
  }

  // Kept only when they are whole, so that no half-typed list is sent.
  take_tools() {
    const box = find('set-tools');
    const {error} = parse_tools(box.value);
    find('tools-error').textContent = error ?? '';
    box.setAttribute('aria-invalid', Boolean(error));
    if (!error && box.value !== this.values.tools) this.set('tools', box.value);
  }

  take_key() {
    this.key = find('set-key').value.trim();
    save_api_key(this.key);
    this.dispatchEvent(new Event('change'));
  }

  reset() {
    this.values = {...default_settings};
    save_settings(this.values);
    find('set-key').value = '';
    this.take_key();
    set_theme('system');
    this.fill();
  }
}
