import { useQuery } from '@tanstack/react-query'
import { ErrorView, Page, PageHead, Skeleton } from '../kit'
import styles from './licences.module.css'

/** The licences of the software of others in Signalbox. The server has the text, so that browsers load it for this page only. */
export function LicencesPage() {
  const query = useQuery({ queryKey: ['licences'], queryFn: ({ signal }) => load(signal), staleTime: Infinity })
  return (
    <Page title="Licences" fill>
      <PageHead title="Licences">
        <a href="/licences.txt">As a text file</a>
      </PageHead>
      {query.isError ? (
        <ErrorView error={query.error} what="The licences" onRetry={() => void query.refetch()} />
      ) : query.data === undefined ? (
        <Skeleton rows={12} />
      ) : (
        <pre className={styles.text} tabIndex={0} aria-label="Licences of the software in Signalbox">
          {query.data}
        </pre>
      )}
    </Page>
  )
}

async function load(signal: AbortSignal): Promise<string> {
  const response = await fetch('/licences.txt', { signal })
  if (!response.ok) throw new Error(`the server answered ${response.status}`)
  return response.text()
}
