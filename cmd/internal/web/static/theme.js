// Sets the theme before anything is drawn, so that nothing flashes. Not a
// module: those run only after the page was read.
(() => {
  let chosen = null
  try { chosen = localStorage.getItem('theme') } catch { /* not allowed: the system's choice holds */ }
  if (chosen === 'dark' || chosen === 'light') document.documentElement.dataset.theme = chosen
})()
