import { Button } from './Button'
import { Dialog } from './Dialog'
import { CopyButton } from './Id'
import styles from './SecretDialog.module.css'

/** Shows a secret that the server does not show again. `what` names it in the button that copies it, as in "the token". */
export function SecretDialog({
  title,
  what,
  secret,
  onClose,
}: {
  title: string
  what: string
  secret: string
  onClose: () => void
}) {
  return (
    <Dialog
      title={title}
      description="Copy it now: it is not shown again."
      open
      onClose={onClose}
      actions={
        <Button kind="primary" onClick={onClose}>
          Done
        </Button>
      }
    >
      <div className={styles.secret}>
        <code>{secret}</code>
        <CopyButton text={secret} label={`Copy ${what}`} />
      </div>
    </Dialog>
  )
}
