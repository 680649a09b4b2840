import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import './shell/base.css'
import { cspNonce } from './api'
import { App } from './shell/App'

// Radix inserts a style element while a dialog is open, with the nonce of this variable.
Object.assign(globalThis, { __webpack_nonce__: cspNonce() })

const root = document.getElementById('root')
if (root === null) throw new Error('index.html has no element #root')
createRoot(root).render(
  <StrictMode>
    <App />
  </StrictMode>,
)
