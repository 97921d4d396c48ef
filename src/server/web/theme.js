// Runs before the page is drawn, so that neither a chosen theme nor the sidebar flashes; everything else is a module.
'use strict';
const chosen_theme = localStorage.getItem('lily.theme');
if (chosen_theme === 'light' || chosen_theme === 'dark') document.documentElement.dataset.theme = chosen_theme;
document.documentElement.classList.toggle('sidebar-open', !matchMedia('(max-width: 760px)').matches);
