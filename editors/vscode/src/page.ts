// Shows a page about the function whose code is shown or which is under the cursor.

import { Pages } from './explain';
import { notInside, SassView } from './sass';
import { Server } from './server';

/** Asks the server with a request that is answered by Markdown. `about` distinguishes the pages about a function. */
export async function showPage(server: Server, view: SassView, pages: Pages, request: string, about: string): Promise<void> {
    if (!server.client) {
        server.missing();
        return;
    }
    const place = view.place();
    const answer = place && await server.client.sendRequest<{ function: string; markdown: string } | null>(request, {
        textDocument: { uri: place.source.toString() },
        ...place.place,
    });
    if (answer) {
        await pages.show(`${about} of ${answer.function}`, answer.markdown);
    } else {
        notInside();
    }
}
