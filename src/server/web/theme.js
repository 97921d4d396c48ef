// Runs before the page is drawn, so that a chosen theme does not flash; everything else is a module.
'use strict';
const chosen_theme = localStorage.getItem('lily.theme');
if (chosen_theme === 'light' || chosen_theme === 'dark') document.documentElement.dataset.theme = chosen_theme;
