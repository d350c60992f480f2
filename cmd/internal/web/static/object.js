// One object: its YAML, its changes as they happen, its past, what owns it and what it owns.

import { el, fill, setText } from './dom.js'
import { getText, historyApi, objectApi, objectPath, tablePath } from './api.js'
import { clock, heardAt, since, tone } from './format.js'
import { editNode } from './edit.js'
import { table as tableOf } from './model.js'
import { Timeline } from './timeline.js'
import { Yaml } from './yaml.js'

const keptChanges = 100
// As the server bounds what it tells.
const mostEdits = 200
const longestValue = 240

export function objectView({ go, back, replace, table, key, params }) {
  const yaml = new Yaml()
  const notice = el('div', { class: 'notice', role: 'status', hidden: true })
  const facts = el('dl', { class: 'facts' })
  const changes = el('ol', { class: 'changes', 'aria-live': 'polite', 'aria-label': 'Changes, the newest first' })
  const quiet = el('p', { class: 'empty' }, 'None since this page was opened.')
  const relations = el('div', { class: 'relations' })
  const more = el('p', { class: 'more', hidden: true })
  const copy = el('button', { type: 'button', class: 'quiet', title: 'Copy the YAML (y)', onclick: () => take() }, 'Copy')
  const parts = key.split('/')
  const past = tableOf(table)?.keepsHistory
    ? new Timeline({ table, key, at: Date.parse(params.get('at')) || null, state: Number(params.get('state')) || null, show: showPast, reveal: path => yaml.reveal(path) })
    : null

  const root = el('div', { class: 'object' },
    el('div', { class: 'bar' },
      el('h1', {}, el('a', { href: tablePath(table) }, table),
        parts.map((part, i) => [el('span', { class: 'slash' }, '/'), i === parts.length - 1 ? el('b', {}, part) : el('span', {}, part)])),
      copy, el('button', { type: 'button', class: 'quiet', id: 'raw', title: 'The whole object as YAML, in a tab of its own', onclick: () => raw() }, 'Raw')),
    past?.node, notice,
    el('div', { class: 'columns' },
      el('section', { class: 'text', 'aria-label': 'YAML' }, yaml.node, more),
      el('aside', {}, facts, past?.details,
        el('section', {}, el('h2', {}, 'Changes'), quiet, changes),
        relations)))

  let state = null
  // gone is what to say of an object that is not there, empty if it is.
  let gone = ''
  // chosen is the state of the past that is shown, null for now.
  let chosen = null

  function show(next) {
    past?.refresh()
    if (next.gone) {
      if (gone) return // another stream tells it again
      gone = state ? `Deleted, seen at ${clock(Date.now())}. Below is its last state.` : 'There is no such object in the mirror. If it comes, it is shown here.'
      if (state) note([{ op: 'remove', path: 'the object', old: '' }])
      drawNotice()
      return
    }
    gone = ''
    drawNotice()
    if (state && state.uid !== next.uid) note([{ op: 'add', path: 'another object of the same name', new: '' }])
    // A stream does not know what the one before it has told.
    const edits = next.edits || (state ? editsOf(state.lines, next.lines) : [])
    state = next
    if (edits.length) note(edits, next.moreEdits)
    if (!chosen) drawText(next, edits)
    drawFacts()
  }

  // showPast shows a state of the past until another one is chosen; null is now.
  function showPast(next) {
    chosen = next
    replace(objectPath(table, key) + (next ? '?state=' + next.state : ''))
    if (next) drawText(next, next.edits || [])
    else if (state) drawText(state, [])
    else drawText({ lines: [] }, [])
    drawNotice()
    drawFacts()
  }

  function drawText(shown, edits) {
    yaml.show(shown.lines, edits)
    const cut = [shown.more && `${shown.more} more lines are not shown`, shown.shortened && `${shown.shortened} values are shortened`].filter(Boolean)
    more.hidden = !cut.length
    if (cut.length) setText(more, `${cut.join(', and ')}: Raw has the whole object.`)
  }

  function drawNotice() {
    root.classList.toggle('gone', gone !== '' && !chosen)
    notice.classList.toggle('past', Boolean(chosen))
    notice.hidden = !chosen && !gone
    if (notice.hidden) return
    if (!chosen) return setText(notice, gone)
    const until = chosen.until ? `, until ${heardAt(Date.parse(chosen.until))}` : ''
    setText(notice, (chosen.operation === 'deleted' ? `Deleted, as heard at ${heardAt(Date.parse(chosen.time))}. Below is its last state, which is not updated.`
      : `As heard at ${heardAt(Date.parse(chosen.time))}${until}. This state is not updated.`) + ' Owners and dependents are those of now.')
  }

  function note(edits, more) {
    quiet.hidden = true
    changes.prepend(el('li', {}, el('time', {}, clock(Date.now())), edits.map(edit => editNode(edit, path => yaml.reveal(path))),
      more && el('p', { class: 'empty' }, 'More fields differ than are shown: Raw has the whole object.')))
    while (changes.children.length > keptChanges) changes.lastChild.remove()
  }

  function drawFacts() {
    const shown = chosen || state
    if (!shown) return
    const age = shown.created && since(shown.created, chosen ? Date.parse(chosen.time) : undefined)
    fill(facts, [['Status', shown.status], ['Age', age], ['Version', shown.version], ['UID', shown.uid]]
      .filter(([, value]) => value)
      .map(([name, value]) => el('div', {}, el('dt', {}, name), el('dd', { 'data-tone': name === 'Status' ? tone(value) : undefined }, value))))
  }

  function relate(found) {
    fill(relations,
      el('section', {}, el('h2', {}, 'Owners'), found.owners.length ? el('ul', {}, found.owners.map(owner => linkNode(owner, owner.kind))) : el('p', { class: 'empty' }, 'None.'),
        found.moreOwners && el('p', { class: 'empty' }, `and ${found.moreOwners} more`)),
      el('section', {}, el('h2', {}, 'Dependents'), found.dependents.length ? found.dependents.map(group =>
        el('div', {}, el('h3', {}, group.kind, el('span', { class: 'count' }, group.count)), el('ul', {}, group.links.map(link => linkNode(link))),
          group.count > group.links.length && el('p', { class: 'empty' }, `and ${group.count - group.links.length} more`)))
        : el('p', { class: 'empty' }, 'None among what is mirrored.')))
  }

  // whole is where the whole of what is shown is.
  const whole = () => chosen ? `${historyApi(table, key)}?as=yaml&state=${chosen.state}` : objectApi(table, key) + '?as=yaml'

  // raw opens the whole object in another tab, which cannot send the session itself.
  async function raw() {
    const tab = open('', '_blank') // now, while the browser still knows that somebody asked for it
    try {
      const address = URL.createObjectURL(new Blob([await getText(whole())], { type: 'text/plain;charset=utf-8' }))
      if (tab) tab.location = address
      else el('a', { download: parts.at(-1) + '.yaml', href: address }).click()
      setTimeout(() => URL.revokeObjectURL(address), 60000)
    } catch (error) {
      tab?.close()
      more.hidden = false
      setText(more, error.message)
    }
  }

  async function take() {
    try {
      await navigator.clipboard.writeText((chosen || state)?.more || (chosen || state)?.shortened ? await getText(whole()) : yaml.text())
      setText(copy, 'Copied')
    } catch {
      setText(copy, 'Not copied')
    }
    setTimeout(() => setText(copy, 'Copy'), 1500)
  }

  return {
    root, title: parts.at(-1), nav: 'explorer', live: { object: table + '/' + key },
    draw: drawFacts,
    start() {
      yaml.node.focus({ preventScroll: true })
      past?.load()
    },
    stop() { past?.close() },
    onEvent(name, data) {
      if (name === 'object') show(data)
      if (name === 'related') relate(data)
      if (name === 'overview') {
        drawFacts()
        past?.tick()
      }
    },
    onKey(event) {
      if (past?.onKey(event)) return true
      if (event.key === 'm' && past && !past.node.hidden) { past.track.focus(); return true }
      if (event.key === 'Escape') { back(tablePath(table)); return true }
      if (event.key === 'y') { take(); return true }
      if (event.key === '/') { go(tablePath(table) + '#search'); return true }
      if (event.key === 'j' || event.key === 'k') {
        yaml.node.scrollBy({ top: event.key === 'j' ? 60 : -60 })
        return true
      }
      return false
    },
  }
}

// editsOf tells by its lines what of an object differs.
function editsOf(before, now) {
  const [was, is] = [before, now].map(lines => {
    const values = new Map()
    for (const { path, value } of lines) {
      if (value && !/^metadata\.(resourceVersion|managedFields)\b/.test(path)) values.set(path, values.has(path) ? values.get(path) + '\n' + value : value)
    }
    return values
  })
  const edits = []
  for (const [path, value] of is) {
    if (!was.has(path)) edits.push({ op: 'add', path, new: brief(value) })
    else if (was.get(path) !== value) edits.push({ op: 'change', path, old: brief(was.get(path)), new: brief(value) })
  }
  for (const [path, value] of was) if (!is.has(path)) edits.push({ op: 'remove', path, old: brief(value) })
  return edits.slice(0, mostEdits)
}

const brief = text => text.length > longestValue ? text.slice(0, longestValue) + '…' : text

function linkNode(link, kind) {
  return el('li', {},
    kind && el('small', {}, kind),
    link.table ? el('a', { href: objectPath(link.table, link.key) }, link.name) : el('span', { class: 'unknown', title: 'not in the mirror' }, link.name),
    link.status && el('span', { class: 'status', 'data-tone': tone(link.status) }, link.status))
}
