import type { Interceptor } from '@connectrpc/connect'
import { createConnectTransport } from '@connectrpc/connect-web'
import { observeServerTime } from './clock'
import { reportAnswer } from './link'
import { csrfToken } from './csrf'
import { requireSignIn } from './signin'

/** observe reads the server's clock and the state of the link from each answer, and sends the session's CSRF token. */
const observe: Interceptor = (next) => async (request) => {
  const token = csrfToken()
  if (token !== '') request.header.set('X-Signalbox-CSRF', token)
  const sent = performance.now()
  try {
    const answer = await next(request)
    const date = answer.header.get('date')
    if (date !== null) observeServerTime(Date.parse(date), sent, 'seconds')
    reportAnswer(undefined)
    return answer
  } catch (error) {
    if (!request.signal.aborted) {
      reportAnswer(error)
      requireSignIn(error)
    }
    throw error
  }
}

/** Messages are binary: the text of payloads never passes a JSON parser, so numbers keep every digit. */
export const transport = createConnectTransport({
  baseUrl: window.location.origin,
  useBinaryFormat: true,
  interceptors: [observe],
})
