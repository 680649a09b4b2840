import { useSignInNeeded } from '../api'
import { Button, Dialog } from '../kit'
import { useSignIn } from './useSignIn'

/** Sign-in over the page: what was typed there stays, and a call can be submitted again. */
export function SignInOverlay() {
  const needed = useSignInNeeded()
  const { fields, submit, busy } = useSignIn(() => undefined)
  return (
    <Dialog
      title="Sign in"
      description="You are not signed in, or your session has ended. What you typed stays on the page."
      open={needed}
      onClose={() => undefined}
      onSubmit={submit}
      closable={false}
      actions={
        <Button type="submit" kind="primary" busy={busy}>
          Sign in
        </Button>
      }
    >
      {fields}
    </Dialog>
  )
}
