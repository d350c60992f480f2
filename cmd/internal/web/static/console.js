// Statements of SQL and what they find.

import { el, fill, setText } from './dom.js'
import { ask, get } from './api.js'
import { count } from './format.js'

// Questions to begin with, each with the tables that it needs.
const questions = [
  ['Pods that are not ready, and why', ['pods'],
    "SELECT namespace, name, status, ready_containers || '/' || containers AS ready, restarts, node\nFROM pods\nWHERE ready = 0 AND phase <> 'Succeeded'\nORDER BY namespace, name"],
  ['Requests against capacity, by node', ['pods', 'nodes'],
    "SELECT n.name, n.cpu_allocatable AS cpu, total(p.cpu_request) AS requested, count(p.id) AS pods\nFROM nodes n\nLEFT JOIN pods p ON p.node = n.name AND p.phase NOT IN ('Succeeded', 'Failed')\nGROUP BY n.id ORDER BY requested / cpu DESC"],
  ['Images in use', ['pods'],
    'SELECT i.value AS image, count(DISTINCT p.node) AS nodes, count(*) AS containers\nFROM pods p, json_each(p.images) i\nGROUP BY image ORDER BY containers DESC'],
  ['Restarts by workload', ['pods'],
    'SELECT namespace, owner_kind, owner_name, sum(restarts) AS restarts\nFROM pods WHERE restarts > 0 AND owner_uid IS NOT NULL\nGROUP BY namespace, owner_uid\nORDER BY restarts DESC LIMIT 20'],
  ['What is in this directory', ['api_resources'], 'SELECT name, table_name, kind, server FROM api_resources ORDER BY name'],
]

// drawn is how many rows are put on the page; a download has all.
const drawn = 1000

export function consoleView({ replace, params }) {
  const statement = el('textarea', {
    id: 'statement', rows: 8, spellcheck: 'false', autocomplete: 'off', autocapitalize: 'off', 'aria-label': 'Statement of SQL', 'aria-describedby': 'sql-said',
    placeholder: 'SELECT namespace, name, status FROM pods WHERE ready = 0',
  })
  statement.value = params.get('q') || ''
  const run = el('button', { type: 'button', id: 'ask', class: 'primary', title: 'Ctrl+Enter', onclick: () => working ? working.abort() : go() }, 'Ask')
  const rows = el('input', { type: 'number', id: 'rows', min: 1, max: 100000, value: 1000, 'aria-label': 'Rows at most' })
  const said = el('p', { id: 'sql-said', class: 'said', role: 'status' })
  const result = el('div', { class: 'result scroll', tabindex: 0, role: 'region', 'aria-label': 'Result' })
  const csv = el('button', { type: 'button', id: 'csv', class: 'quiet', onclick: () => save('csv') }, 'CSV')
  const json = el('button', { type: 'button', id: 'json', class: 'quiet', onclick: () => save('json') }, 'JSON')
  const list = el('nav', { class: 'sidebar sql-tables', 'aria-label': 'Tables' })
  const choice = el('select', { 'aria-label': 'Questions to begin with', onchange: begin }, el('option', { value: '' }, 'Questions …'))
  const root = el('div', { class: 'console' }, list, el('section', {},
    el('h1', { class: 'visually-hidden' }, 'SQL'), statement,
    el('div', { class: 'bar' }, run, el('label', {}, 'at most ', rows, ' rows'), choice, el('span', { class: 'gap' }), csv, json),
    said, result))

  let working = null
  let tables = []
  let asked = '' // the statement whose answer is shown

  function begin() {
    const question = questions.find(q => q[0] === choice.value)
    choice.value = ''
    if (!question) return
    statement.value = question[2]
    statement.focus()
  }

  function say(text, alarm = false) {
    said.classList.toggle('alarm', alarm)
    statement.setAttribute('aria-invalid', String(alarm))
    setText(said, text)
  }

  async function go() {
    const text = statement.value.trim()
    if (!text || working) return
    working = new AbortController()
    setText(run, 'Stop')
    say('Asking …')
    replace('/sql?' + new URLSearchParams({ q: text }))
    try {
      const found = await ask(text, { rows: rows.value || 1000, signal: working.signal })
      asked = text
      show(found)
    } catch (error) {
      asked = ''
      fill(result)
      say(error.name === 'AbortError' ? 'Stopped.' : error.message, error.name !== 'AbortError')
    }
    working = null
    setText(run, 'Ask')
    offer()
  }

  function offer() { csv.disabled = json.disabled = !asked }

  function show(found) {
    const numeric = found.columns.map((_, i) => found.rows.length > 0 && found.rows.every(row => row[i] === null || typeof row[i] === 'number'))
    const cell = (value, i) => value === null
      ? el('td', { class: 'null' }, 'NULL')
      : el('td', { class: numeric[i] && 'n', title: String(value).length > 60 && String(value) }, String(value))
    fill(result, el('table', {},
      el('thead', {}, el('tr', {}, found.columns.map((name, i) => el('th', { scope: 'col', class: numeric[i] && 'n' }, name)))),
      el('tbody', {}, found.rows.slice(0, drawn).map(row => el('tr', {}, row.map(cell))))))
    const parts = [`${count(found.rows.length)} ${found.rows.length === 1 ? 'row' : 'rows'} in ${(found.seconds * 1000).toFixed(found.seconds < 0.1 ? 1 : 0)} ms`]
    if (found.cut) parts.push('there are more: allow more rows, or ask for less')
    if (found.rows.length > drawn) parts.push(`the first ${count(drawn)} are shown, a download has all`)
    if (found.unwritten) parts.push(`the first state of ${found.unwritten.join(' and ')} is not all on disk yet`)
    if (found.incomplete) parts.push(`the copy of ${found.incomplete.join(' and ')} is not complete`)
    if (found.error) parts.push(found.error)
    say(parts.join('; '), Boolean(found.error))
  }

  async function save(format) {
    if (!asked) return
    try {
      const link = el('a', { download: 'tarn.' + format, href: URL.createObjectURL(await ask(asked, { rows: rows.value || 1000, format })) })
      link.click()
      setTimeout(() => URL.revokeObjectURL(link.href), 60000)
    } catch (error) {
      say(error.message, true)
    }
  }

  // open shows the columns of a table; a click on a name puts it where the cursor is.
  async function open(name, node) {
    const shown = node.nextElementSibling
    if (shown?.tagName === 'OL') {
      shown.remove()
      node.setAttribute('aria-expanded', 'false')
      return
    }
    try {
      const found = await get('/api/sql?' + new URLSearchParams({ table: name }))
      node.after(el('ol', {}, found.columns.map(column => el('li', {}, el('button', { type: 'button', class: 'quiet', onclick: () => insert(column) }, column)))))
      node.setAttribute('aria-expanded', 'true')
    } catch (error) {
      say(error.message, true)
    }
  }

  function insert(text) {
    statement.setRangeText(text, statement.selectionStart, statement.selectionEnd, 'end')
    statement.focus()
  }

  async function start() {
    offer()
    statement.focus()
    try {
      tables = (await get('/api/sql')).tables
    } catch (error) {
      run.disabled = true
      say(error.message, true)
      return
    }
    fill(list, tables.map(name => {
      const node = el('button', { type: 'button', class: 'quiet', 'aria-expanded': 'false', title: 'Columns', onclick: () => open(name, node) }, name)
      return node
    }))
    for (const [title, needed] of questions) {
      if (needed.every(name => tables.includes(name))) choice.append(el('option', { value: title }, title))
    }
  }

  statement.addEventListener('keydown', event => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) { event.preventDefault(); go() }
  })

  return {
    root, title: 'SQL', nav: 'sql', live: {}, start,
    draw() {}, onEvent() {},
    stop() { working?.abort() },
    onKey(event) {
      if (event.target === statement && event.key === 'Escape') { result.focus(); return true }
      if (event.key === '/' && event.target !== statement && event.target !== rows) { statement.focus(); return true }
      return false
    },
  }
}
