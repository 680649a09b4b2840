/** cspNonce returns the nonce of the document, for libraries that insert style elements; undefined where the page was served without one. */
export function cspNonce(): string | undefined {
  const nonce = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content
  return nonce === undefined || nonce === '' || nonce === '__CSP_NONCE__' ? undefined : nonce
}
