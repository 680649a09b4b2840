import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState, type ReactNode } from 'react'
import { clients, requireSignIn, setCSRFToken } from '../api'
import { CallProblem, TextField } from '../kit'
import styles from './session.module.css'

/** useSignIn exchanges a token for a session. The token leaves the page with the request and is kept nowhere. */
export function useSignIn(onDone: () => void): { fields: ReactNode; submit: () => void; busy: boolean } {
  const [token, setToken] = useState('')
  const [checked, setChecked] = useState(false)
  const queries = useQueryClient()
  const signIn = useMutation({
    mutationFn: () => clients.sessions.signIn({ token: token.trim() }),
    onSuccess: async ({ current }) => {
      setToken('')
      setCSRFToken(current?.csrfToken ?? '')
      requireSignIn(undefined)
      await queries.invalidateQueries()
      onDone()
    },
  })
  const submit = () => {
    setChecked(true)
    if (token.trim() !== '' && !signIn.isPending) signIn.mutate()
  }
  const fields = (
    <div className={styles.fields}>
      <TextField
        label="Token"
        type="password"
        name="signalbox-token"
        required
        value={token}
        onChange={(event) => setToken(event.target.value)}
        error={checked && token.trim() === '' ? 'Paste a token.' : undefined}
        hint="An administrator creates tokens on the page Access or with signalbox token create."
        autoFocus
      />
      {signIn.isError ? <CallProblem error={signIn.error} /> : null}
    </div>
  )
  return { fields, submit, busy: signIn.isPending }
}
