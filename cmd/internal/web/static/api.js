// Requests to the server that this page came from.

export class ApiError extends Error {
  constructor(status, message) {
    super(message)
    this.status = status
  }
}

// The session that stands for the token. It is in the storage of this very origin:
// a cookie would be sent to every other port of this machine too.
const key = 'tarn-session'
let session = null
try { session = JSON.parse(localStorage.getItem(key)) } catch { /* it holds until the page is left */ }

export const signedIn = () => session !== null

function keep(next) {
  session = next
  try {
    if (next) localStorage.setItem(key, JSON.stringify(next))
    else localStorage.removeItem(key)
  } catch { /* it holds until the page is left */ }
}

// Another tab signs in or out.
addEventListener('storage', event => {
  if (event.key !== key) return
  try { session = JSON.parse(event.newValue) } catch { session = null }
})

// send makes a request with the session, and fails if there is no answer.
export async function send(path, { headers = {}, ...options } = {}) {
  if (session && !headers.Authorization) headers = { ...headers, Authorization: 'Bearer ' + session.session }
  try {
    return await fetch(path, { credentials: 'omit', cache: 'no-store', redirect: 'error', headers, ...options })
  } catch (error) {
    if (error.name === 'AbortError') throw error
    throw new ApiError(0, 'the server does not answer')
  }
}

export async function get(path, options = {}) {
  const response = await send(path, options)
  let body
  try {
    body = await response.json()
  } catch (error) {
    if (error.name === 'AbortError') throw error
    throw new ApiError(response.status, 'the answer of the server is not understood')
  }
  if (!response.ok) throw new ApiError(response.status, body.error || response.statusText)
  return body
}

// failure is why a request was refused.
async function failure(response) {
  return new ApiError(response.status, (await response.json().catch(() => ({}))).error || response.statusText)
}

// ask sends a statement of SQL. With a format it gives the answer as a file.
export async function ask(statement, { rows, format = '', signal } = {}) {
  const path = '/api/sql?' + new URLSearchParams({ rows, ...(format && { format }) })
  const options = { method: 'POST', headers: { 'Content-Type': 'application/sql' }, body: statement, signal }
  if (!format) return get(path, options)
  const response = await send(path, options)
  if (!response.ok) throw await failure(response)
  return response.blob()
}

// getText is for what is not JSON.
export async function getText(path) {
  const response = await send(path)
  if (!response.ok) throw await failure(response)
  return response.text()
}

// signIn exchanges a token for a session. The token is not sent where others could
// read it on the way.
export async function signIn(token) {
  if (!isSecureContext) throw new ApiError(0, 'This page came unencrypted, so the token is not sent: open it by https, or from this machine.')
  const opened = await get('/api/session', { method: 'POST', headers: { Authorization: 'Bearer ' + token } })
  keep(opened)
}

// signOut ends this session, or all there are.
export async function signOut(all) {
  try { await get('/api/session' + (all ? '?all=true' : ''), { method: 'DELETE' }) } finally { keep(null) }
}

// forget drops a session that the server does not know any more.
export const forget = () => keep(null)

// tokenFromAddress takes a token out of #token=…, which is never sent to any
// server, and out of the address and the history.
export function tokenFromAddress() {
  const match = /^#token=(.+)$/.exec(location.hash)
  if (!match) return null
  history.replaceState(history.state, '', location.pathname + location.search)
  try { return decodeURIComponent(match[1]) } catch { return match[1] }
}

export const tablePath = name => '/t/' + encodeURIComponent(name)

export const objectPath = (table, key) => '/o/' + [table, ...key.split('/')].map(encodeURIComponent).join('/')

export const historyApi = (table, key) => '/api/history/' + [table, ...key.split('/')].map(encodeURIComponent).join('/')

export const objectApi = (table, key) => '/api/objects/' + [table, ...key.split('/')].map(encodeURIComponent).join('/')
