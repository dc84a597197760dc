"""
From what an app asked to a task, or to the earlier one that answers it: account, pictures, the provider's words,
fingerprint, and the store's one atomic step.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from vidrelay.core.adapter import PictureRule, Prepared
from vidrelay.core.clock import Clock
from vidrelay.core.disk import Assets
from vidrelay.core.errors import InvalidRequest, UnknownAccount
from vidrelay.core.fingerprint import fingerprint
from vidrelay.core.media import PICTURES, check_taken
from vidrelay.core.policy import Policy
from vidrelay.core.ports import AccountBook, Admission, How, Store, TwinRule
from vidrelay.core.task import Asset, Reference, Request, State, Task
from vidrelay.scheduler.account import Account
from vidrelay.scheduler.cache import Cache
from vidrelay.scheduler.face import Sender
from vidrelay.scheduler.figures import saved_counter

ANY_PICTURE = PictureRule()
UNHEARD = timedelta(seconds=2)
"""A submit that was stored so long before the relay is known to have lived has been answered."""


class Admitter:
    """
    Answers submits.
    """

    def __init__(
        self,
        *,
        store: Store,
        book: AccountBook,
        assets: Assets,
        cache: Cache,
        clock: Clock,
        new_id: Callable[[], str],
        policy: Policy,
        accounts: Mapping[str, Account],
    ) -> None:
        self._store = store
        self._book = book
        self._assets = assets
        self._cache = cache
        self._clock = clock
        self._new_id = new_id
        self._policy = policy
        self._accounts = accounts
        self._cut_off: tuple[datetime, datetime] | None = None

    def begin(self, last_sign: datetime | None) -> None:
        """
        A life of the relay begins; `last_sign` is when an earlier one last saved something.
        """
        self._cut_off = None if last_sign is None else (last_sign - UNHEARD, self._clock.now())

    async def admit(self, request: Request, sender: Sender) -> Admission:
        """
        Answer a submit; what is returned is durable.

        Raises:
            RequestError: It cannot be done as asked; nothing was made.
        """
        account = self.choose(request)
        request, pictures = await self._pictures(request, account)
        prepared = account.plan.adapter.prepare(request, pictures)
        return await self._answered(self._new_task(request, sender, account, prepared, pictures), sender)

    async def admit_prepared(
        self, request: Request, prepared: Prepared, pictures: Mapping[str, Asset], sender: Sender
    ) -> Admission:
        """
        As `admit`, for what came in the provider's own words; `pictures` are those that stand in its parameters, by id.

        Raises:
            RequestError: It cannot be done as asked; nothing was made.
        """
        account = self.choose(request)
        task = self._new_task(request, sender, account, prepared, pictures)
        # Not every SDK says that it resends.
        return await self._answered(task, sender, cut_off=self._cut_off)

    async def take_in(self, chunks: AsyncIterator[bytes], account: str) -> Asset:
        """
        Keep a picture, a film or a sound for that account's provider.

        Raises:
            RequestError: It is none, or none that the provider takes.
        """
        plan = self._accounts[account].plan
        return await self._assets.put(chunks, media=plan.adapter.traits.media, who=plan.provider)

    async def fitted(self, asset: Asset, account: str) -> Asset:
        """
        What was kept before as that account's provider takes it: itself, or a picture's scaled copy.

        Raises:
            RequestError: It does not take it, and it cannot be made so.
        """
        plan = self._accounts[account].plan
        if asset.media_type not in PICTURES:
            check_taken(asset.media_type, asset.size_bytes, plan.adapter.traits.media, who=plan.provider)
            return asset
        rule = plan.adapter.traits.pictures
        return asset if rule is None else await self._assets.fitted(asset, rule)

    async def _answered(
        self, task: Task, sender: Sender, *, cut_off: tuple[datetime, datetime] | None = None
    ) -> Admission:
        while True:
            rule = replace(self._rule(sender, task.created_at), cut_off=cut_off)
            admission = await self._store.add(task, rule)
            earlier = admission.task
            if admission.how not in (How.CACHED, How.JOINED) or earlier.state is not State.DONE:
                break
            if await self._cache.whole(earlier):
                break
            # The index promised a file that is gone: forget it and ask again, as if for the first time.
            await self._cache.forget(earlier)
            answered = "cacheHits" if admission.how is How.CACHED else "deduped"
            self._store.count(**{"submits": -1, answered: -1})
        if admission.how is not How.CREATED and admission.task.cost is not None:
            self._store.count(**saved_counter(admission.task.cost))
        return admission

    def choose(self, request: Request) -> Account:
        """
        The account a request goes to: the one it names, the provider's first, the default, or the only one.

        Raises:
            UnknownAccount: There is none of that name, or none can be chosen.
        """
        name = request.account
        if name is None and request.provider is not None:
            name = next((a.name for a in self._accounts.values() if a.plan.provider == request.provider), None)
            if name is None:
                raise UnknownAccount(f"no account uses the provider {request.provider!r}", hint=self._known())
        name = name or self._policy.default_account
        if name is None:
            raise UnknownAccount("the request names no account and there is no default", hint=self._known())
        account = self._accounts.get(name)
        if account is None:
            raise UnknownAccount(f"no account is named {name!r}", hint=self._known())
        if request.provider is not None and account.plan.provider != request.provider:
            raise InvalidRequest(
                f"account {name!r} uses the provider {account.plan.provider!r}, not {request.provider!r}",
                field="provider",
            )
        return account

    def _known(self) -> str:
        return "accounts here: " + ", ".join(sorted(self._accounts))

    async def _pictures(self, request: Request, account: Account) -> tuple[Request, dict[str, Asset]]:
        """
        Take in the pictures a request names; returns it with their ids, and by id the picture to send for each.
        """
        references, pictures = [], {}
        for reference in request.references:
            kept, asset = await self._picture(reference)
            references.append(kept)
            if asset is not None:
                rule = account.plan.adapter.traits.pictures or ANY_PICTURE
                pictures[asset.id] = await self._assets.fitted(asset, rule)
        return replace(request, references=tuple(references)), pictures

    async def _picture(self, reference: Reference) -> tuple[Reference, Asset | None]:
        if reference.asset is not None:
            asset = await self._book.asset(reference.asset)
            if asset.media_type not in PICTURES:
                raise InvalidRequest(f"{reference.asset} is no picture but {asset.media_type}.", field="references")
            return reference, asset
        if reference.path is not None:
            asset = await self._assets.put_path(reference.path)
            return replace(reference, asset=asset.id), asset
        return reference, None

    def _new_task(
        self, request: Request, sender: Sender, account: Account, prepared: Prepared, pictures: Mapping[str, Asset]
    ) -> Task:
        now = self._clock.now()
        traits, parameters = account.plan.adapter.traits, account.plan.adapter.typed(prepared.parameters)
        return Task(
            id=self._new_id(),
            account=account.name,
            provider=account.plan.provider,
            window=account.window_of(prepared.model),
            model_version=prepared.model,
            request=request,
            parameters=parameters,
            fingerprint=fingerprint(
                account=account.name,
                provider=account.plan.provider,
                parameters=parameters,
                pictures={asset.id: asset.pixels for asset in pictures.values()},
                irrelevant=traits.irrelevant,
                prompts=traits.prompts,
            ),
            created_at=now,
            updated_at=now,
            app=sender.app,
            cost=account.cost(prepared),
        )

    def _rule(self, sender: Sender, now: datetime) -> TwinRule:
        return TwinRule(
            twins_since=now - self._policy.dedupe_window,
            cached_since=self._cache.oldest(),
            join_live=self._policy.join_live,
            client_key=sender.client_key,
            request_id=sender.request_id,
            resend=sender.resend,
        )
