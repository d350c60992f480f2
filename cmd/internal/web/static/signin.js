// Asks for the token that the server wants to see.

import { el, setText } from './dom.js'
import { signIn } from './api.js'

export function signInView(done) {
  const input = el('input', { type: 'password', id: 'token', autocomplete: 'current-password', required: true })
  const problem = el('p', { class: 'alarm', role: 'alert' })
  const form = el('form', { class: 'signin' },
    el('h1', {}, 'This server wants a token'),
    el('p', {}, 'The program prints a link that signs in, or it was started with a token of your own. You stay signed in for some hours.'),
    el('label', { for: 'token' }, 'Token'), input, el('button', {}, 'Sign in'), problem)
  form.addEventListener('submit', async event => {
    event.preventDefault()
    try {
      await signIn(input.value)
      done()
    } catch (error) {
      setText(problem, error.status === 401 ? 'That is not the token.' : error.message)
      input.select()
    }
  })
  return { root: form, title: 'Sign in', nav: '', live: null, draw() {}, start() { input.focus() }, onEvent() {}, onKey() { return false } }
}
