// One object: its YAML, its changes as they happen, what owns it and what it owns.

import { el, fill, setText } from './dom.js'
import { getText, objectApi, objectPath, tablePath } from './api.js'
import { clock, since, tone } from './format.js'
import { Yaml } from './yaml.js'

const keptChanges = 100
// As the server bounds what it tells.
const mostEdits = 200
const longestValue = 240

export function objectView({ go, back, table, key }) {
  const yaml = new Yaml()
  const notice = el('div', { class: 'notice', role: 'status', hidden: true })
  const facts = el('dl', { class: 'facts' })
  const changes = el('ol', { class: 'changes', 'aria-live': 'polite', 'aria-label': 'Changes, the newest first' })
  const quiet = el('p', { class: 'empty' }, 'None since this page was opened.')
  const relations = el('div', { class: 'relations' })
  const more = el('p', { class: 'more', hidden: true })
  const copy = el('button', { type: 'button', class: 'quiet', title: 'Copy the YAML (y)', onclick: () => take() }, 'Copy')
  const parts = key.split('/')

  const root = el('div', { class: 'object' },
    el('div', { class: 'bar' },
      el('h1', {}, el('a', { href: tablePath(table) }, table),
        parts.map((part, i) => [el('span', { class: 'slash' }, '/'), i === parts.length - 1 ? el('b', {}, part) : el('span', {}, part)])),
      copy, el('button', { type: 'button', class: 'quiet', id: 'raw', title: 'The whole object as YAML, in a tab of its own', onclick: () => raw() }, 'Raw')),
    notice,
    el('div', { class: 'columns' },
      el('section', { class: 'text', 'aria-label': 'YAML' }, yaml.node, more),
      el('aside', {}, facts,
        el('section', {}, el('h2', {}, 'Changes'), quiet, changes),
        relations)))

  let state = null

  function show(next) {
    if (next.gone) {
      if (root.classList.contains('gone')) return // another stream tells it again
      notice.hidden = false
      setText(notice, state ? `Deleted, seen at ${clock(Date.now())}. Below is its last state.` : 'There is no such object in the mirror. If it comes, it is shown here.')
      root.classList.add('gone')
      if (state) note([{ op: 'remove', path: 'the object', old: '' }])
      return
    }
    notice.hidden = true
    root.classList.remove('gone')
    if (state && state.uid !== next.uid) note([{ op: 'add', path: 'another object of the same name', new: '' }])
    // A stream does not know what the one before it has told.
    const edits = next.edits || (state ? editsOf(state.lines, next.lines) : [])
    state = next
    yaml.show(next.lines, edits)
    const cut = [next.more && `${next.more} more lines are not shown`, next.shortened && `${next.shortened} values are shortened`].filter(Boolean)
    more.hidden = !cut.length
    if (cut.length) setText(more, `${cut.join(', and ')}: Raw has the whole object.`)
    if (edits.length) note(edits, next.moreEdits)
    drawFacts()
  }

  function note(edits, more) {
    quiet.hidden = true
    changes.prepend(el('li', {}, el('time', {}, clock(Date.now())), edits.map(edit => editNode(edit, path => yaml.reveal(path))),
      more && el('p', { class: 'empty' }, 'More fields differ than are shown: Raw has the whole object.')))
    while (changes.children.length > keptChanges) changes.lastChild.remove()
  }

  function drawFacts() {
    if (!state) return
    fill(facts, [['Status', state.status], ['Age', state.created && since(state.created)], ['Version', state.version], ['UID', state.uid]]
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

  // raw opens the whole object in another tab, which cannot send the session itself.
  async function raw() {
    const tab = open('', '_blank') // now, while the browser still knows that somebody asked for it
    try {
      const address = URL.createObjectURL(new Blob([await getText(objectApi(table, key) + '?as=yaml')], { type: 'text/plain;charset=utf-8' }))
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
      await navigator.clipboard.writeText(state?.more || state?.shortened ? await getText(objectApi(table, key) + '?as=yaml') : yaml.text())
      setText(copy, 'Copied')
    } catch {
      setText(copy, 'Not copied')
    }
    setTimeout(() => setText(copy, 'Copy'), 1500)
  }

  return {
    root, title: parts.at(-1), nav: 'explorer', live: { object: table + '/' + key },
    draw: drawFacts,
    start() { yaml.node.focus({ preventScroll: true }) },
    onEvent(name, data) {
      if (name === 'object') show(data)
      if (name === 'related') relate(data)
      if (name === 'overview') drawFacts()
    },
    onKey(event) {
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

function editNode(edit, reveal) {
  return el('div', { class: 'edit ' + edit.op },
    el('button', { type: 'button', class: 'path', title: 'Show it in the YAML', onclick: () => reveal(edit.path) }, edit.path),
    edit.old !== undefined && el('del', {}, edit.old),
    edit.new !== undefined && el('ins', {}, edit.new))
}

function linkNode(link, kind) {
  return el('li', {},
    kind && el('small', {}, kind),
    link.table ? el('a', { href: objectPath(link.table, link.key) }, link.name) : el('span', { class: 'unknown', title: 'not in the mirror' }, link.name),
    link.status && el('span', { class: 'status', 'data-tone': tone(link.status) }, link.status))
}
