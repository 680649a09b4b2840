import { useNavigate, useSearch } from '@tanstack/react-router'
import { one, type Search } from '../app'
import { localPath } from '../app/next'
import { Button, Page, PageHead, Panel } from '../kit'
import styles from './session.module.css'
import { useSignIn } from './useSignIn'

/** The page for signing in; afterwards it goes to the path in `next`. */
export function SignInPage() {
  const search = useSearch({ strict: false }) as Search
  const navigate = useNavigate()
  const { fields, submit, busy } = useSignIn(() => {
    void navigate({ to: localPath(one(search, 'next')), replace: true })
  })
  return (
    <Page title="Sign in">
      <div className={styles.page}>
        <PageHead title="Sign in" />
        <Panel>
          <form
            className={styles.form}
            noValidate
            onSubmit={(event) => {
              event.preventDefault()
              submit()
            }}
          >
            {fields}
            <Button type="submit" kind="primary" busy={busy}>
              Sign in
            </Button>
          </form>
        </Panel>
      </div>
    </Page>
  )
}
