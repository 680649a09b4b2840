import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { useState } from 'react'
import { callError } from '../api'
import { Toasts, TooltipProvider } from '../kit'
import { newRouter } from './router'

/** A query is repeated after a lost answer, never after a refusal: repeating that would not help. */
const newQueryClient = () =>
  new QueryClient({
    defaultOptions: {
      queries: {
        // A browser that believes to be offline may still reach a server on its own machine.
        networkMode: 'always',
        staleTime: 2_000,
        refetchOnWindowFocus: true,
        retry: (count, error) => callError(error).kind === 'unavailable' && count < 4,
        retryDelay: (attempt) => Math.min(15_000, 1000 * 2 ** attempt) * (0.75 + Math.random() / 2),
      },
      mutations: { retry: false, networkMode: 'always' },
    },
  })

export function App() {
  const [client] = useState(newQueryClient)
  const [router] = useState(() => {
    const created = newRouter(client)
    // The code of the page is requested before the frame is drawn, not after.
    void created.preloadRoute({ to: window.location.pathname })
    return created
  })
  return (
    <QueryClientProvider client={client}>
      <TooltipProvider>
        <RouterProvider router={router} />
        <Toasts />
      </TooltipProvider>
    </QueryClientProvider>
  )
}
