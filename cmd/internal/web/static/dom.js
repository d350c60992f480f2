// Elements without markup: text stays text, whatever it contains.

export function el(tag, props, ...children) {
  const node = document.createElement(tag)
  for (const [name, value] of Object.entries(props || {})) {
    if (value === undefined || value === null || value === false) continue
    if (name === 'class') node.className = value
    else if (name.startsWith('on')) node.addEventListener(name.slice(2), value)
    else node.setAttribute(name, value === true ? '' : value)
  }
  add(node, children)
  return node
}

export function svg(tag, attributes, ...children) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', tag)
  for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value)
  add(node, children)
  return node
}

function add(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child !== undefined && child !== null && child !== false) node.append(child)
  }
}

// fill makes children the whole content of a node.
export function fill(node, ...children) {
  node.replaceChildren()
  add(node, children)
  return node
}

// setText writes only what differs, so that nothing is laid out in vain and a
// selection stays.
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text
}
